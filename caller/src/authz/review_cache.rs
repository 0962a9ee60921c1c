//! The host's answers about one virtual cluster, and how long they are cached.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::memo::{Accepted, Condition, Memo};
use crate::reviews::key::Key;
use crate::reviews::{Decision, ReviewError, Rules};

/// The time for which a permission is cached, unless it is extended. A revocation that was not written through the endpoint takes
/// effect after this time at the latest. While the agent cannot watch RBAC of the host, no extension is valid, and a watch of the
/// hub checks a permission again after 250 ms. So 5 s are the limit there, too.
const ALLOWED_TTL: Duration = Duration::from_millis(4750);
/// The time for which a refusal is cached. It also applies to a list of rules, which refuses everything that it does
/// not contain.
const DENIED_TTL: Duration = Duration::from_secs(1);
/// The time after a write during which some API servers of the host may not know it yet.
const SETTLING_TIME: Duration = Duration::from_secs(2);
/// An entry is about 200 bytes, and 1 KiB more at most.
const MAX_DECISIONS: usize = 4096;
/// An entry may have about 800 KB if a caller has very many roles.
const MAX_RULE_LISTS: usize = 32;

/// Decisions and lists of rules.
#[derive(Debug)]
pub(super) struct ReviewCache {
    decisions: Memo<Key, Decision, ReviewError>,
    rules: Memo<Key, Arc<Rules>, ReviewError>,
    settled_at: Mutex<Option<Instant>>,
}

// === impl ReviewCache ===

impl ReviewCache {
    pub(super) async fn decision<F>(
        &self,
        key: Key,
        accepted: Accepted,
        ask: impl FnOnce() -> F,
    ) -> Result<Decision, ReviewError>
    where
        F: Future<Output = Result<Decision, ReviewError>>,
    {
        let keep = |decision: &Decision| if decision.allowed { Some(ALLOWED_TTL) } else { self.refusal() };
        self.decisions.get_accepted(key, accepted, ask, keep).await
    }

    /// Extends a cached permission while `condition` is true. Does nothing for a denial, or if nothing is cached.
    pub(super) fn extend(&self, key: Key, condition: Condition) {
        self.decisions.extend(key, |decision| decision.allowed, condition);
    }

    pub(super) async fn rules<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Result<Arc<Rules>, ReviewError>
    where
        F: Future<Output = Result<Arc<Rules>, ReviewError>>,
    {
        self.rules.get(key, ask, |_| self.refusal()).await
    }

    pub(super) fn flush(&self) {
        // This comes first, so that no refusal is cached between the two statements.
        *self.settled_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + SETTLING_TIME);
        self.decisions.flush();
        self.rules.flush();
    }

    /// Forgets all answers but extended ones, whose conditions consider the change.
    pub(super) fn expire(&self) {
        self.decisions.expire();
        self.rules.flush();
    }

    pub(super) fn is_settling(&self) -> bool {
        let settled_at = *self.settled_at.lock().unwrap_or_else(PoisonError::into_inner);
        settled_at.is_some_and(|settled_at| Instant::now() < settled_at)
    }

    /// The time for which to cache a refusal now.
    fn refusal(&self) -> Option<Duration> {
        (!self.is_settling()).then_some(DENIED_TTL)
    }
}

impl Default for ReviewCache {
    fn default() -> Self {
        Self { decisions: Memo::new(MAX_DECISIONS), rules: Memo::new(MAX_RULE_LISTS), settled_at: Mutex::default() }
    }
}
