//! The right of a caller to go on with a watch.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ops::drain::Tasks;
use rewrite::{ClusterName, HostNamespace};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::rights::{Member, Rights, Scope};

/// While changes of rights are not watched, a permission that was checked this recently counts.
const RECENT: Duration = Duration::from_millis(250);

/// The maximum number of attempts to check a right if the host does not answer, and the pause between them.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

/// The right to a watch. A feed reads the host in the agent's own name, so the host does not check the caller's right.
pub struct Permission {
    member: Member,
    tasks: Tasks,
    check: Arc<dyn Fn(Validity) -> Check + Send + Sync>,
    last: Checked,
    checking: Option<oneshot::Receiver<Option<Checked>>>,
}

/// A check of the right. `None` if the host does not answer. It should use a cache, because several watches can have the same
/// right.
pub type Check = Pin<Box<dyn Future<Output = Option<bool>> + Send>>;

/// Until when a review of a right to watch is valid. This does not depend on the watch: when the watch has ended, the next one
/// with the same right needs no review.
#[derive(Clone)]
pub struct Validity {
    scope: Arc<Scope>,
    /// The round in which the review began.
    round: u64,
}

/// When a right existed.
#[derive(Clone, Copy, Debug)]
struct Checked {
    /// The round in which the check began.
    round: u64,
    at: Instant,
}

// === impl Permission ===

impl Permission {
    /// The right to a watch in a namespace, or in all namespaces if it is the root namespace. Check the right once *after* you
    /// have called this. `check` checks it again, and gets the validity of its answer.
    pub fn new(
        rights: &Rights,
        cluster: &ClusterName,
        namespace: &HostNamespace,
        tasks: &Tasks,
        check: impl Fn(Validity) -> Check + Send + Sync + 'static,
    ) -> Self {
        let member = Member::new(rights.scope(cluster, namespace));
        let last = Checked { round: member.scope().round(), at: Instant::now() };
        Self { member, tasks: tasks.clone(), check: Arc::new(check), last, checking: None }
    }

    /// The validity of the last review.
    pub fn validity(&self) -> Validity {
        Validity { scope: Arc::clone(self.member.scope()), round: self.last.round }
    }

    /// Whether the caller still has the right, assuming that no change of rights was missed. Wakes the task when this may
    /// have changed.
    pub(crate) fn poll_known(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.poll(cx, |_| true)
    }

    /// Whether the caller still has the right.
    pub(crate) fn poll_allowed(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.poll(cx, |this| this.last.at.elapsed() < RECENT || this.member.scope().is_current())
    }

    fn poll(&mut self, cx: &mut Context<'_>, suffices: impl Fn(&Self) -> bool) -> Poll<bool> {
        loop {
            let Some(checking) = &mut self.checking else {
                if self.last.round == self.member.round(cx.waker()) && suffices(self) {
                    return Poll::Ready(true);
                }
                self.checking = Some(self.begin());
                continue;
            };
            let checked = ready!(Pin::new(checking).poll(cx)).ok().flatten();
            self.checking = None;
            let Some(checked) = checked else { return Poll::Ready(false) };
            self.last = checked;
            if checked.round == self.member.round(cx.waker()) {
                return Poll::Ready(true);
            }
        }
    }

    /// Checks the right in a task, because a client that does not read would hold up the others that ask the same question.
    fn begin(&self) -> oneshot::Receiver<Option<Checked>> {
        let (sender, checked) = oneshot::channel();
        let (scope, check) = (Arc::clone(self.member.scope()), Arc::clone(&self.check));
        self.tasks.spawn_until_cancelled("check of a watch", async move {
            for _ in 0..ATTEMPTS {
                let turn = scope.turn().await;
                if sender.is_closed() {
                    return;
                }
                let checked = Checked { round: scope.round(), at: Instant::now() };
                let validity = Validity { scope: Arc::clone(&scope), round: checked.round };
                if let Some(is_allowed) = check(validity).await {
                    // The watch may have ended.
                    let _ = sender.send(is_allowed.then_some(checked));
                    return;
                }
                drop(turn);
                sleep(PAUSE).await;
            }
        });
        checked
    }
}

// === impl Validity ===

impl Validity {
    /// Whether the review is still valid: no change since then concerns the right, as far as changes are watched.
    pub fn holds(&self) -> bool {
        self.round == self.scope.round() && self.scope.is_current()
    }

    #[cfg(test)]
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }
}

impl fmt::Debug for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validity").field("round", &self.round).finish_non_exhaustive()
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("last", &self.last).finish_non_exhaustive()
    }
}
