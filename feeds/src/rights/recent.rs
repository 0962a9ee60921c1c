//! The changes of RBAC for which cached reviews may still be older.

use std::collections::VecDeque;
use std::time::Duration;

use rewrite::{ClusterName, HostNamespace};
use tokio::time::Instant;

use super::concern::Concern;

/// Reviews are cached for at most 4.75 s (`caller::authz`), and the RBAC caches of API servers lag. A review that is cached for longer
/// has a [`ReviewValidity`](crate::ReviewValidity), which keeps its scope, so its scope has a round for each change.
const REMEMBERED: Duration = Duration::from_secs(7);

/// The maximum number of remembered changes.
const CHANGES: usize = 1024;

/// The latest changes. A watch that begins after a change may begin with a cached review from before it.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(Instant, Concern)>);

// === impl Recent ===

impl Recent {
    pub(super) fn note(&mut self, concern: &Concern, now: Instant) {
        self.forget_old(now);
        self.0.retain(|(_, known)| known != concern);
        if self.0.len() == CHANGES {
            self.0 = [(now, Concern::Everybody)].into();
        } else {
            self.0.push_back((now, concern.clone()));
        }
    }

    /// Whether the rights in a namespace of a virtual cluster have changed recently.
    pub(super) fn concerns(&mut self, cluster: &ClusterName, namespace: &HostNamespace, now: Instant) -> bool {
        self.forget_old(now);
        self.0.iter().any(|(_, concern)| match concern {
            Concern::Nobody => false,
            Concern::Namespace(changed) => changed == namespace.as_str(),
            Concern::Cluster(changed) => changed == cluster,
            Concern::Everybody => true,
        })
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|(at, _)| now.duration_since(*at) < REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_remembered_while_reviews_are_cached() {
        let (now, mut recent) = (Instant::now(), Recent::default());
        let (ke, hz) = (ClusterName::new("ke").unwrap(), ClusterName::new("hz").unwrap());
        let [edge, other] = ["edge-ke", "edge-hz"].map(|name| HostNamespace::new(name).unwrap());
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        recent.note(&Concern::Namespace("edge-ke".to_owned()), now);
        assert!(recent.concerns(&ke, &edge, after(6_999)) && !recent.concerns(&hz, &other, after(6_999)));
        recent.note(&Concern::Cluster(hz.clone()), after(1_000));
        assert!(recent.concerns(&hz, &other, after(7_999)) && !recent.concerns(&ke, &edge, after(7_999)));
        recent.note(&Concern::Nobody, after(8_000));
        assert!(!recent.concerns(&hz, &other, after(8_000)));
        for number in 0..=CHANGES {
            recent.note(&Concern::Namespace(number.to_string()), after(9_000));
        }
        assert!(recent.concerns(&ke, &edge, after(9_000)) && recent.0.len() <= CHANGES);
    }
}
