//! What the host answered about one virtual cluster, and for how long that counts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::memo::Memo;
use super::{Decision, Key, ReviewError, Rules};

/// How long a permission is believed. A revocation that was not written through the endpoint is in force after this at
/// the latest.
const ALLOWED: Duration = Duration::from_secs(5);
/// How long a refusal is believed, and a list of rules, which is a refusal of all that is not in it.
const DENIED: Duration = Duration::from_secs(1);
/// For this long after a write, the host's API servers may not all know of it.
const SETTLING: Duration = Duration::from_secs(2);
/// An entry is about 150 bytes, and 1 KiB more at most.
const DECISIONS: usize = 4096;
/// An entry may be some 800 KB, if a caller has very many roles.
const RULE_LISTS: usize = 32;

/// Decisions and lists of rules.
#[derive(Debug)]
pub(super) struct Answers {
    decisions: Memo<Key, Decision, ReviewError>,
    rules: Memo<Key, Arc<Rules>, ReviewError>,
    settled_at: Mutex<Option<Instant>>,
}

// === impl Answers ===

impl Answers {
    pub(super) async fn decision<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Result<Decision, ReviewError>
    where
        F: Future<Output = Result<Decision, ReviewError>>,
    {
        let keep = |decision: &Decision| if decision.allowed { Some(ALLOWED) } else { self.refusal() };
        self.decisions.get(key, ask, keep).await
    }

    pub(super) async fn rules<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Result<Arc<Rules>, ReviewError>
    where
        F: Future<Output = Result<Arc<Rules>, ReviewError>>,
    {
        self.rules.get(key, ask, |_| self.refusal()).await
    }

    pub(super) fn flush(&self) {
        // First, so that nobody remembers a refusal between the two.
        *self.settled_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + SETTLING);
        self.decisions.flush();
        self.rules.flush();
    }

    pub(super) fn is_settling(&self) -> bool {
        let settled_at = *self.settled_at.lock().unwrap_or_else(PoisonError::into_inner);
        settled_at.is_some_and(|settled_at| Instant::now() < settled_at)
    }

    /// How long to remember one now.
    fn refusal(&self) -> Option<Duration> {
        (!self.is_settling()).then_some(DENIED)
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self { decisions: Memo::new(DECISIONS), rules: Memo::new(RULE_LISTS), settled_at: Mutex::default() }
    }
}
