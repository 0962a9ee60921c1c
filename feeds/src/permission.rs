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
    check: Arc<dyn Fn(ReviewValidity) -> Check + Send + Sync>,
    last: Checked,
    checking: Option<oneshot::Receiver<Option<Checked>>>,
}

/// A check of the right: whether the caller has it. `None` if the host does not answer. It should use a cache, because several
/// watches can have the same right.
pub type Check = Pin<Box<dyn Future<Output = Option<bool>> + Send>>;

/// Whether a review of a right to watch is still valid. It outlives the watch, so the next watch with the same right needs no
/// review. While it exists, its scope exists, and changes of RBAC begin rounds in that scope.
pub struct ReviewValidity {
    scope: Arc<Scope>,
    /// The round in which the review began.
    round: u64,
    /// Whether API servers should have known the last change of RBAC when the review began.
    is_settled: bool,
}

/// When a right existed.
#[derive(Clone, Copy, Debug)]
struct Checked {
    /// The round in which the check began.
    round: u64,
    at: Instant,
    /// Whether API servers should have known the last change of RBAC by then.
    is_settled: bool,
}

// === impl Permission ===

impl Permission {
    /// The right to a watch in a namespace, or in all namespaces if it is the root namespace. Check the right once *after* you
    /// have called this. `check` checks it again. Its argument is the validity of the answer.
    pub fn new(
        rights: &Rights,
        cluster: &ClusterName,
        namespace: &HostNamespace,
        tasks: &Tasks,
        check: impl Fn(ReviewValidity) -> Check + Send + Sync + 'static,
    ) -> Self {
        let member = Member::new(rights.scope(cluster, namespace));
        let last = Checked::now(member.scope());
        Self { member, tasks: tasks.clone(), check: Arc::new(check), last, checking: None }
    }

    /// The validity of the last check. Before the first check, that of a review that begins after [`new`](Self::new).
    pub fn validity(&self) -> ReviewValidity {
        self.last.validity(self.member.scope())
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
                let checked = Checked::now(&scope);
                let validity = checked.validity(&scope);
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

// === impl Checked ===

impl Checked {
    /// A check that begins now.
    fn now(scope: &Scope) -> Self {
        Self { round: scope.round(), at: Instant::now(), is_settled: scope.is_settled() }
    }

    fn validity(self, scope: &Arc<Scope>) -> ReviewValidity {
        ReviewValidity { scope: Arc::clone(scope), round: self.round, is_settled: self.is_settled }
    }
}

// === impl ReviewValidity ===

impl ReviewValidity {
    /// Whether the review began in the current round, but not soon after a change, and all RBAC watches are current. After a change,
    /// this is true until the round of that change begins, up to about a second later. Takes no lock.
    pub fn holds(&self) -> bool {
        self.is_settled && self.round == self.scope.round() && self.scope.is_current()
    }

    #[cfg(test)]
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }
}

impl fmt::Debug for ReviewValidity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewValidity").field("round", &self.round).finish_non_exhaustive()
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("last", &self.last).finish_non_exhaustive()
    }
}
