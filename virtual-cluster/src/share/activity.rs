//! Which virtual clusters send requests.
//!
//! A limit that protects others is of no use while there are no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A virtual cluster is active for this time after a request. Informers of Karmada begin new watches all the time, and `kubectl`
/// sends several requests for a command.
const ACTIVE: Duration = Duration::from_secs(2);

/// When virtual clusters last sent requests.
#[derive(Debug)]
struct Log {
    origin: Instant,
    clusters: AtomicU32,
    /// The latest request.
    latest: AtomicU64,
    /// The latest one of another virtual cluster.
    other: AtomicU64,
}

/// The requests of one virtual cluster, among those of all others.
#[derive(Clone, Debug)]
pub struct Activity {
    log: Arc<Log>,
    cluster: u32,
}

/// A request: the number of its cluster, and its time in milliseconds.
#[derive(Clone, Copy)]
struct Sent {
    cluster: u32,
    at: u32,
}

// === impl Log ===

impl Default for Log {
    fn default() -> Self {
        let nothing = AtomicU64::default;
        Self { origin: Instant::now(), clusters: AtomicU32::new(0), latest: nothing(), other: nothing() }
    }
}

// === impl Activity ===

impl Activity {
    /// The first of several virtual clusters.
    pub fn new() -> Self {
        Self { log: Arc::default(), cluster: 0 }.another()
    }

    /// Another virtual cluster.
    #[must_use]
    pub fn another(&self) -> Self {
        // Zero stands for none.
        let cluster = self.log.clusters.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Self { log: Arc::clone(&self.log), cluster }
    }

    /// Records a request of an authorised caller. Two at the same moment may be recorded as one.
    pub fn note(&self) {
        let sent = Sent { cluster: self.cluster, at: self.now() };
        let latest = Sent::from(self.log.latest.swap(sent.into(), Ordering::Relaxed));
        if latest.cluster != self.cluster {
            self.log.other.store(latest.into(), Ordering::Relaxed);
        }
    }

    /// Whether another virtual cluster has sent a request within the last two seconds.
    pub fn has_others(&self) -> bool {
        let now = self.now();
        [&self.log.latest, &self.log.other].into_iter().map(|sent| Sent::from(sent.load(Ordering::Relaxed))).any(
            |sent| {
                let age = Duration::from_millis(now.wrapping_sub(sent.at).into());
                sent.cluster != 0 && sent.cluster != self.cluster && age < ACTIVE
            },
        )
    }

    fn now(&self) -> u32 {
        // It starts again after 49 days. A request is then taken for a recent one for two seconds.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let now = self.log.origin.elapsed().as_millis() as u32;
        now
    }
}

impl Default for Activity {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Sent ===

impl From<Sent> for u64 {
    fn from(sent: Sent) -> Self {
        Self::from(sent.cluster) << 32 | Self::from(sent.at)
    }
}

impl From<u64> for Sent {
    fn from(bits: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let (cluster, at) = ((bits >> 32) as u32, bits as u32);
        Self { cluster, at }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cluster_has_others_while_they_are_active() {
        let a = Activity::new();
        let (b, c) = (a.another(), a.another());
        let others = || [&a, &b, &c].map(Activity::has_others);
        assert_eq!(others(), [false; 3]);
        a.note();
        assert_eq!(others(), [false, true, true]);
        advance(ACTIVE / 2).await;
        b.note();
        b.note();
        assert_eq!(others(), [true, true, true], "the latest request of another cluster than b is that of a");
        advance(ACTIVE / 2).await;
        assert_eq!(others(), [true, false, true]);
        advance(ACTIVE / 2).await;
        assert_eq!(others(), [false; 3]);
    }
}
