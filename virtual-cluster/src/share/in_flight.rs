//! Requests in flight: those whose response has not ended.
//!
//! Each occupies memory of the agent and a stream to the host, which all virtual clusters share. So there is a limit for
//! all clusters, and none takes more of it than it leaves free for others ([`FairBudget`]). Like kube-apiserver
//! (`WithMaxInFlightLimit` in apiserver's `pkg/server/filters/maxinflight.go`), the agent refuses further requests at once,
//! and counts long-running requests separately: a client may keep them open for days. It also counts sessions separately,
//! because each may occupy a megabyte, and has a connection to the host of its own.

use tunnel::{FairBudget, Reservation, Share};

/// The requests of all virtual clusters that are not long-running. Each cluster may have half of them. kube-apiserver
/// executes 600 at a time (`--max-requests-inflight` and `--max-mutating-requests-inflight`), and keeps others waiting.
const SHORT: usize = 2_000;

/// The long-running requests of all virtual clusters: as many as one tunnel carries. Each cluster may have half of them.
const LONG_RUNNING: usize = 10_000;

/// The sessions of all virtual clusters: requests that switch protocols, and requests to the servers of pods. Each cluster may have half of them. The client of a
/// session can send a window ([`STREAM_WINDOW`](protocol::settings::STREAM_WINDOW)) that the pod does not read, before the
/// agent's budget for unread bytes resets the stream. So the windows of all sessions take 256 MiB at most.
const SESSIONS: usize = 256;

/// The limits for all virtual clusters.
#[derive(Debug)]
pub struct MaxInFlight {
    short: FairBudget,
    long_running: FairBudget,
    sessions: FairBudget,
}

/// The requests of one virtual cluster. Clones are the same.
#[derive(Clone, Debug)]
pub struct InFlight {
    short: Share,
    long_running: Share,
    sessions: Share,
}

/// A kind of requests that has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An API server has a time limit for the response.
    Short,
    /// The response takes as long as the client likes.
    LongRunning,
    /// It switches protocols.
    Session,
}

// === impl MaxInFlight ===

impl MaxInFlight {
    /// A share for one more cluster.
    pub fn share(&self) -> InFlight {
        InFlight { short: self.short.share(), long_running: self.long_running.share(), sessions: self.sessions.share() }
    }
}

impl Default for MaxInFlight {
    fn default() -> Self {
        let budget = |limit| FairBudget::new(limit, limit);
        Self { short: budget(SHORT), long_running: budget(LONG_RUNNING), sessions: budget(SESSIONS) }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Counts a request until the reservation is dropped. `None` if the cluster has too many.
    pub fn admit(&self, kind: Kind) -> Option<Reservation> {
        self.of(kind).reserve(1)
    }

    /// The requests of a kind.
    pub fn of(&self, kind: Kind) -> &Share {
        match kind {
            Kind::Short => &self.short,
            Kind::LongRunning => &self.long_running,
            Kind::Session => &self.sessions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(cluster: &InFlight, kind: Kind) -> Vec<Reservation> {
        std::iter::from_fn(|| cluster.admit(kind)).collect()
    }

    #[test]
    fn clusters_leave_room_for_others() {
        let all = MaxInFlight::default();
        let clusters = [(); 3].map(|()| all.share());
        for (kind, limit) in [(Kind::Short, SHORT), (Kind::LongRunning, LONG_RUNNING), (Kind::Session, SESSIONS)] {
            let requests = clusters.each_ref().map(|cluster| fill(cluster, kind));
            assert_eq!(requests.each_ref().map(Vec::len), [limit / 2, limit / 4, limit / 8]);
        }
    }

    #[test]
    fn each_kind_counts_separately() {
        let cluster = MaxInFlight::default().share();
        let mut watches = fill(&cluster, Kind::LongRunning);
        assert!(cluster.admit(Kind::Short).is_some() && cluster.admit(Kind::Session).is_some());
        watches.pop();
        assert!(cluster.admit(Kind::LongRunning).is_some());
    }
}
