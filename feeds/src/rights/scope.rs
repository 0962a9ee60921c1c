//! The watches in one namespace of a virtual cluster, whose rights change together.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rewrite::ClusterName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::leases::Leases;
use super::rounds::{LIFETIME, Rounds};

/// The watches in one namespace of a virtual cluster, or those of all its namespaces. It exists while one of them is open, or a
/// [`ReviewValidity`](crate::ReviewValidity) exists.
pub(crate) struct Scope {
    cluster: ClusterName,
    turns: Turns,
    leases: Arc<Leases>,
    /// A copy of the number in `state.rounds` that can be read without a lock. The cache of reviews is locked when it calls
    /// [`ReviewValidity::holds`](crate::ReviewValidity::holds). [`Scope::begin_due_round`] locks `state`, and then `forget` locks the
    /// cache. So `holds` must not lock `state`.
    round: AtomicU64,
    state: Mutex<State>,
}

struct State {
    rounds: Rounds,
    /// The watches that wait for the next round.
    waiting: HashMap<u64, Waker>,
    members: u64,
}

/// The limits for the number of reviews at a time.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    pub(super) cluster: Arc<Semaphore>,
    pub(super) all: Arc<Semaphore>,
}

/// The right to send a review.
#[derive(Debug)]
pub(crate) struct Turn {
    _cluster: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// A watch of a scope.
#[derive(Debug)]
pub(crate) struct Member {
    scope: Arc<Scope>,
    number: u64,
}

// === impl Scope ===

impl Scope {
    pub(super) fn new(cluster: ClusterName, turns: Turns, leases: Arc<Leases>, now: Instant) -> Self {
        // Rounds of different scopes begin at different times.
        let lifetime = LIFETIME.mul_f64(1.0 - fastrand::f64() / 5.0);
        let state = State { rounds: Rounds::new(now, lifetime), waiting: HashMap::new(), members: 0 };
        let round = AtomicU64::new(state.rounds.number());
        Self { cluster, turns, leases, round, state: Mutex::new(state) }
    }

    pub(super) fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// The rights may have changed.
    pub(super) fn changed(&self, now: Instant) {
        self.lock().rounds.changed(now);
    }

    /// Begins the next round if it is due, and wakes the watches. Returns when the round after it is due.
    pub(super) fn begin_due_round(&self, now: Instant, forget: impl Fn(&ClusterName)) -> Instant {
        let mut state = self.lock();
        if !state.rounds.begin_due(now) {
            return state.rounds.due();
        }
        // Before anybody can see the new round: a check in it must not get an answer from before.
        forget(&self.cluster);
        self.round.store(state.rounds.number(), Ordering::Release);
        let (waiting, due) = (std::mem::take(&mut state.waiting), state.rounds.due());
        drop(state);
        waiting.into_values().for_each(Waker::wake);
        due
    }

    /// The current round.
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::Acquire)
    }

    /// Whether the last change of RBAC is so long ago that API servers should know it.
    pub(crate) fn is_settled(&self) -> bool {
        self.lock().rounds.is_settled(Instant::now())
    }

    /// Whether each change of RBAC begins a round.
    pub(crate) fn is_current(&self) -> bool {
        self.leases.are_held(Instant::now())
    }

    /// Waits for the turn to send a review.
    pub(crate) async fn turn(&self) -> Turn {
        // In this order, a virtual cluster takes no more of the common turns than its own limit. Nobody closes them.
        let cluster = Arc::clone(&self.turns.cluster).acquire_owned().await.ok();
        let all = Arc::clone(&self.turns.all).acquire_owned().await.ok();
        Turn { _cluster: cluster, _all: all }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

// === impl Member ===

impl Member {
    /// Another watch.
    pub(crate) fn new(scope: Arc<Scope>) -> Self {
        let mut state = scope.lock();
        state.members += 1;
        let number = state.members;
        drop(state);
        Self { scope, number }
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// The current round. The next one wakes this waker.
    pub(crate) fn round(&self, waker: &Waker) -> u64 {
        let mut state = self.scope.lock();
        match state.waiting.get_mut(&self.number) {
            Some(known) => known.clone_from(waker),
            None => _ = state.waiting.insert(self.number, waker.clone()),
        }
        state.rounds.number()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.scope.lock().waiting.remove(&self.number);
    }
}
