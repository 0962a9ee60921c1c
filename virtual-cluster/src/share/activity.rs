//! Whether other virtual clusters are active.
//!
//! A limit that protects other virtual clusters applies only while they send requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A virtual cluster is active for this time after a request. A cluster in use seldom pauses for longer: Karmada's informers
/// renew watches continually, and `kubectl` sends several requests for each command. A much longer time would limit a cluster
/// whose neighbours are idle.
const ACTIVE: Duration = Duration::from_secs(2);

/// The latest requests of all virtual clusters.
#[derive(Clone, Debug, Default)]
pub struct ActivityLog(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    clusters: usize,
    latest: Option<Request>,
    /// The latest one of another virtual cluster.
    other: Option<Request>,
}

/// The number of a virtual cluster, and the time of its request.
type Request = (usize, Instant);

/// The requests of one virtual cluster, among those of all others.
#[derive(Clone, Debug)]
pub struct Activity {
    log: ActivityLog,
    cluster: usize,
}

/// Whether other virtual clusters are active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Another virtual cluster has sent a request within the last two seconds.
    Active,
    /// None has.
    Idle,
}

// === impl ActivityLog ===

impl ActivityLog {
    /// One more virtual cluster.
    pub fn cluster(&self) -> Activity {
        let mut requests = self.lock();
        requests.clusters += 1;
        Activity { log: self.clone(), cluster: requests.clusters }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Activity ===

impl Activity {
    /// Records a request of an authorised caller.
    pub fn record(&self) {
        let mut log = self.log.lock();
        let latest = log.latest.replace((self.cluster, Instant::now()));
        log.other = latest.filter(|(cluster, _)| *cluster != self.cluster).or(log.other);
    }

    /// Whether other virtual clusters are active.
    pub fn others(&self) -> Others {
        let log = self.log.lock();
        let is_active = |(cluster, at): &Request| *cluster != self.cluster && at.elapsed() < ACTIVE;
        if [log.latest, log.other].iter().flatten().any(is_active) { Others::Active } else { Others::Idle }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_active_for_two_seconds() {
        let log = ActivityLog::default();
        let clusters = [log.cluster(), log.cluster(), log.cluster()];
        let [a, b, _] = &clusters;
        let others = || clusters.each_ref().map(|cluster| cluster.others() == Others::Active);
        assert_eq!(others(), [false; 3]);
        a.record();
        assert_eq!(others(), [false, true, true]);
        advance(ACTIVE / 2).await;
        b.record();
        b.record();
        assert_eq!(others(), [true, true, true], "the latest request of another cluster than b is that of a");
        advance(ACTIVE / 2).await;
        assert_eq!(others(), [true, false, true]);
        advance(ACTIVE / 2).await;
        assert_eq!(others(), [false; 3]);
    }
}
