//! Spaces out the token reviews of a virtual cluster.
//!
//! Everyone who reaches an endpoint can send tokens, and the host must review each new one. So these reviews are spaced out
//! ([`Spacing`]). Tokens that were valid in this virtual cluster do not wait: a flood of invalid ones does not delay their users.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host_client::spacing::{Spacing, Turn};
use tokio::sync::Semaphore;

use crate::memo::Recent;
use crate::reviews::ReviewError;
use crate::reviews::key::Key;

/// The number of reviews that may wait. At 50 per second, the last one waits for 2.6 seconds.
const PLACES: usize = 128;

/// The number of valid tokens that are known. Each takes 32 bytes.
const MAX_VALID: usize = 1024;

/// The token reviews of one virtual cluster.
#[derive(Debug)]
pub(super) struct ReviewTurns {
    places: Semaphore,
    spacing: Arc<Spacing>,
    valid: Mutex<Recent<Key, ()>>,
}

// === impl ReviewTurns ===

impl ReviewTurns {
    pub(super) fn new() -> Self {
        Self { places: Semaphore::new(PLACES), spacing: Arc::default(), valid: Mutex::new(Recent::new(MAX_VALID)) }
    }

    /// Waits until the host may review this token. A token that was valid needs no turn.
    pub(super) async fn take(&self, key: &Key) -> Result<Option<Turn>, ReviewError> {
        if self.valid().get(key).is_some() {
            return Ok(None);
        }
        let _place = self.places.try_acquire().map_err(|_| ReviewError::Busy)?;
        Ok(Some(self.spacing.begin().await))
    }

    /// The token is valid in this virtual cluster.
    pub(super) fn record_valid(&self, key: Key) {
        self.valid().insert(key, ());
    }

    fn valid(&self) -> MutexGuard<'_, Recent<Key, ()>> {
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
                let turn = turns.take(&key(number)).await;
                sleep(Duration::from_millis(10)).await;
                turn.map(drop)
            });
        }
        sleep(Duration::from_millis(1)).await;
        assert!(turns.take(&key(0)).await.unwrap().is_none());
        assert!(begun.elapsed() < Duration::from_millis(2));
        let taken = flood.join_all().await.iter().filter(|turn| turn.is_ok()).count();
        // The first one does not wait.
        assert_eq!(taken, PLACES + 1);
        assert!(begun.elapsed() >= MAX_SPACING * 128, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn few_new_tokens_do_not_wait() {
        let turns = ReviewTurns::new();
        for number in 0..10 {
            let begun = Instant::now();
            drop(turns.take(&key(number)).await.unwrap());
            assert_eq!(begun.elapsed(), Duration::ZERO);
            sleep(MAX_SPACING).await;
        }
    }
}
