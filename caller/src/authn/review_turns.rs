//! Spaces out the token reviews of a virtual cluster.
//!
//! Anyone who can reach an endpoint can send tokens, and the host must review each new one. So these reviews are spaced out
//! ([`Spacing`]), and begin in the order in which the tokens arrived. A token that was valid in this virtual cluster before needs no
//! turn, so that a flood of invalid tokens does not delay its user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host_client::QUEUE_WAIT;
use host_client::spacing::{Spacing, Turn};
use tokio::time::timeout;

use crate::memo::Recent;
use crate::reviews::ReviewError;
use crate::reviews::key::Key;

/// The maximum number of valid tokens that are remembered. Each is a digest of 32 bytes.
const MAX_VALID: usize = 1024;

/// The token reviews of one virtual cluster.
#[derive(Debug)]
pub(super) struct ReviewTurns {
    spacing: Arc<Spacing>,
    valid: Mutex<Recent<Key, ()>>,
}

// === impl ReviewTurns ===

impl ReviewTurns {
    pub(super) fn new() -> Self {
        Self { spacing: Arc::default(), valid: Mutex::new(Recent::new(MAX_VALID)) }
    }

    /// Waits until the host may review this token. A token that was valid before needs no turn.
    pub(super) async fn take(&self, key: &Key) -> Result<Option<Turn>, ReviewError> {
        if self.valid().get(key).is_some() {
            return Ok(None);
        }
        timeout(QUEUE_WAIT, self.spacing.begin()).await.map(Some).map_err(|_| ReviewError::Busy)
    }

    /// Remembers that this token is valid in this virtual cluster, so that its next reviews need no turn.
    pub(super) fn record_valid(&self, key: Key) {
        let mut valid = self.valid();
        if valid.get(&key).is_none() {
            valid.insert(key, ());
        }
    }

    /// The token is no longer valid.
    pub(super) fn forget(&self, key: &Key) {
        self.valid().remove(key);
    }

    fn valid(&self) -> MutexGuard<'_, Recent<Key, ()>> {
        // Every change is complete before anything can panic.
        self.valid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use host_client::spacing::MAX_SPACING;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep};

    use super::*;

    fn key(number: usize) -> Key {
        Key::of_token(&format!("token {number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_new_tokens_is_spaced_out_and_does_not_delay_valid_ones() {
        let turns = Arc::new(ReviewTurns::new());
        turns.record_valid(key(0));
        let begun = Instant::now();
        let mut flood = JoinSet::new();
        for number in 1..=1000 {
            let turns = Arc::clone(&turns);
            flood.spawn(async move {
                let turn = turns.take(&key(number)).await?;
                sleep(Duration::from_millis(10)).await;
                turn.into_iter().for_each(Turn::end);
                Ok::<_, ReviewError>(())
            });
        }
        sleep(Duration::from_millis(1)).await;
        assert!(turns.take(&key(0)).await.unwrap().is_none());
        assert!(begun.elapsed() < Duration::from_millis(2));
        let taken = flood.join_all().await.iter().filter(|turn| turn.is_ok()).count();
        assert!((740..=752).contains(&taken), "{taken}");
        assert!(begun.elapsed() <= QUEUE_WAIT + MAX_SPACING);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_no_longer_valid_waits() {
        let turns = ReviewTurns::new();
        turns.record_valid(key(0));
        turns.forget(&key(0));
        drop(turns.take(&key(1)).await.unwrap());
        let begun = Instant::now();
        assert!(turns.take(&key(0)).await.unwrap().is_some());
        assert_eq!(begun.elapsed(), MAX_SPACING);
    }

    #[tokio::test(start_paused = true)]
    async fn few_new_tokens_do_not_wait() {
        let turns = ReviewTurns::new();
        for number in 0..10 {
            let begun = Instant::now();
            turns.take(&key(number)).await.unwrap().unwrap().end();
            assert_eq!(begun.elapsed(), Duration::ZERO);
            sleep(MAX_SPACING).await;
        }
    }
}
