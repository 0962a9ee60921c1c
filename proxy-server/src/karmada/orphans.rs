//! Clusters of Karmada that have our label and are in no configuration.
//!
//! Their entries were removed while no proxy-server ran, so they exist at the first check. A Cluster that appears later
//! was created by a replica with a newer configuration. To delete it would remove everything that Karmada has put
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;
use tracing::info;

/// How long such a Cluster stays. A replica may have a newer configuration than this process: Secrets and ConfigMaps
/// reach pods up to two minutes apart.
const ORPHAN_AFTER: Duration = Duration::from_secs(150);

/// The orphans of one control plane.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// The orphans, and since when they are known. `None` before the first check.
    since: Option<BTreeMap<ClusterName, Instant>>,
}

// === impl Orphans ===

impl Orphans {
    /// One check. `there` are all Clusters with our label that no configuration contains. Returns those to delete now.
    pub(super) fn due(&mut self, there: &BTreeSet<ClusterName>, now: Instant) -> Vec<ClusterName> {
        let since = self.since.get_or_insert_with(|| {
            for name in there {
                info!(cluster = %name, "this Cluster in Karmada is not in the configuration any more; deleting it");
            }
            there.iter().map(|name| (name.clone(), now)).collect()
        });
        since.retain(|name, _| there.contains(name));
        since.iter().filter(|(_, since)| now >= **since + ORPHAN_AFTER).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replica_makes_stays() {
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<ClusterName>>();
        let mut orphans = Orphans::default();
        let start = Instant::now();
        assert_eq!(orphans.due(&names(&["left"]), start), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + ORPHAN_AFTER / 2), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + ORPHAN_AFTER), ["left".parse().unwrap()]);
        // It was deleted and created again.
        assert_eq!(orphans.due(&names(&["new"]), start + ORPHAN_AFTER), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + 4 * ORPHAN_AFTER), []);
        // If there were none at first, none is ours to delete.
        let mut orphans = Orphans::default();
        assert_eq!(orphans.due(&names(&[]), start), []);
        assert_eq!(orphans.due(&names(&["new"]), start + ORPHAN_AFTER), []);
        assert_eq!(orphans.due(&names(&["new"]), start + 3 * ORPHAN_AFTER), []);
    }
}
