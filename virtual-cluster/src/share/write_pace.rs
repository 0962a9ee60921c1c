//! Paces the writes of a virtual cluster while other virtual clusters are active.
//!
//! Each write takes the host a few milliseconds of CPU time: admission, etcd, and an event for each watch. Priority and Fairness
//! (KEP-1040) limits how many requests run at a time, and not how much CPU time they take. So a flood of small writes of one cluster
//! delays the requests of all others. `client-go` sends at most 5 requests per second by default, and busy controllers 50.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::activity::Others;

/// The time between two writes: 75 per second.
const INTERVAL: Duration = Duration::from_micros(13_333);

/// The number of writes that need not wait if there were none for a while.
const BURST: u32 = 75;

/// A write that would have to wait longer is refused.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The pace of one virtual cluster (the generic cell rate algorithm of ITU-T I.371).
#[derive(Debug, Default)]
pub struct WritePace {
    /// The time at which the writes so far have taken exactly their part of the time.
    arrival: Mutex<Option<Instant>>,
}

// === impl WritePace ===

impl WritePace {
    /// Waits until a write may begin. `false` if it would have to wait for too long.
    pub async fn turn(&self, others: Others) -> bool {
        if others == Others::Idle {
            return true;
        }
        let Some(wait) = self.enter(Instant::now()) else { return false };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        true
    }

    /// Counts a write, and returns how long it must wait. `None` if that is too long.
    fn enter(&self, now: Instant) -> Option<Duration> {
        let mut arrival = self.arrival.lock().unwrap_or_else(PoisonError::into_inner);
        let due = arrival.map_or(now, |arrival| arrival.max(now));
        let wait = due.saturating_duration_since(now).saturating_sub(BURST * INTERVAL);
        if wait > MAX_WAIT {
            return None;
        }
        *arrival = Some(due + INTERVAL);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_needs_not_wait_and_more_writes_do() {
        let (pace, begun) = (WritePace::default(), Instant::now());
        for _ in 0..BURST {
            assert!(pace.turn(Others::Active).await);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..750 {
            assert!(pace.turn(Others::Active).await);
        }
        let measured = begun.elapsed();
        assert!(measured.abs_diff(Duration::from_secs(10)) < Duration::from_millis(100), "{measured:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_refused() {
        let (pace, begun, mut writes) = (Arc::new(WritePace::default()), Instant::now(), JoinSet::new());
        for _ in 0..1000 {
            let pace = Arc::clone(&pace);
            writes.spawn(async move { pace.turn(Others::Active).await });
        }
        let admitted = writes.join_all().await.into_iter().filter(|admitted| *admitted).count();
        assert!((440..460).contains(&admitted), "{admitted}");
        assert!(begun.elapsed() <= MAX_WAIT + Duration::from_millis(1));
    }

    #[tokio::test(start_paused = true)]
    async fn writes_of_a_single_active_cluster_do_not_wait() {
        let (pace, begun) = (WritePace::default(), Instant::now());
        for _ in 0..1000 {
            assert!(pace.turn(Others::Idle).await);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
