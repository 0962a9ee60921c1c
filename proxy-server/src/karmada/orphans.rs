//! Clusters in Karmada that have the label of this configuration but are not in it.
//!
//! They were removed from the configuration while no proxy-server ran, so they exist at the first check. A Cluster that
//! appears later was created by a replica with a newer configuration, and must stay: a deletion would remove all
//! objects that Karmada has created in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;
use tracing::info;

/// The time before an orphan is deleted. A replica may have a newer configuration than this process: Secrets and
/// ConfigMaps reach pods up to two minutes apart.
const ORPHAN_AFTER: Duration = Duration::from_secs(150);

/// The orphans of one control plane.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// The orphans of the first check, and its time. `None` before the first check.
    since: Option<BTreeMap<ClusterName, Instant>>,
}

// === impl Orphans ===

impl Orphans {
    /// Takes the orphans that now exist, and returns those to delete now.
    pub(super) fn due(&mut self, existing: &BTreeSet<ClusterName>, now: Instant) -> Vec<ClusterName> {
        let since = self.since.get_or_insert_with(|| {
            for name in existing {
                info!(cluster = %name, "this Cluster in Karmada is not in the configuration any more; deleting it");
            }
            existing.iter().map(|name| (name.clone(), now)).collect()
        });
        since.retain(|name, _| existing.contains(name));
        since.iter().filter(|(_, since)| now >= **since + ORPHAN_AFTER).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orphans_of_the_first_check_are_deleted() {
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<ClusterName>>();
        let mut orphans = Orphans::default();
        let start = Instant::now();
        assert_eq!(orphans.due(&names(&["left"]), start), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + ORPHAN_AFTER / 2), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + ORPHAN_AFTER), ["left".parse().unwrap()]);
        // It was deleted and created again.
        assert_eq!(orphans.due(&names(&["new"]), start + ORPHAN_AFTER), []);
        assert_eq!(orphans.due(&names(&["left", "new"]), start + 4 * ORPHAN_AFTER), []);
        // The first check found none.
        let mut orphans = Orphans::default();
        assert_eq!(orphans.due(&names(&[]), start), []);
        assert_eq!(orphans.due(&names(&["new"]), start + ORPHAN_AFTER), []);
        assert_eq!(orphans.due(&names(&["new"]), start + 3 * ORPHAN_AFTER), []);
    }
}
