//! Changes of the policies by others.

use std::future::pending;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::policy::{Kind, LABEL};
use super::served::Served;
use host_client::api::Change;
use host_client::api::{Following, HostApi};

/// Follows the collections of policies and bindings that the host serves.
pub(super) struct Changes<A> {
    api: A,
    followed: Served,
    followers: JoinSet<()>,
    notified: Option<mpsc::Receiver<()>>,
}

// === impl Changes ===

impl<A: HostApi> Changes<A> {
    pub(super) fn new(api: A) -> Self {
        Self { api, followed: Served::default(), followers: JoinSet::new(), notified: None }
    }

    /// Follows what is served. Does nothing if that is followed already.
    pub(super) fn follow(&mut self, served: Served) {
        if served == self.followed {
            return;
        }
        self.followed = served;
        self.followers.abort_all();
        // A capacity of one: the message says only that something has changed.
        let (notify, notified) = mpsc::channel(1);
        self.notified = Some(notified);
        let kinds = [(served.validating, Kind::Validating), (served.mutating, Kind::Mutating)];
        for (version, kind) in kinds.into_iter().filter_map(|(version, kind)| Some((version?, kind))) {
            for collection in kind.collections(version) {
                self.followers.spawn(forward(self.api.follow(&collection, LABEL), notify.clone()));
            }
        }
    }

    /// Waits until a policy or binding is changed or deleted. Cancel-safe.
    pub(super) async fn next(&mut self) {
        if let Some(notified) = &mut self.notified
            && notified.recv().await.is_some()
        {
            return;
        }
        pending::<()>().await;
    }
}

/// Reports changes. The agent has just read or written the objects that exist when this begins.
async fn forward(mut following: impl Following, notify: mpsc::Sender<()>) {
    let mut is_synced = false;
    loop {
        match following.next().await {
            Change::Synced => is_synced = true,
            Change::Applied(_) if !is_synced => {}
            Change::Applied(_) | Change::Deleted(_) => _ = notify.try_send(()),
        }
    }
}
