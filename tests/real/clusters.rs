//! `atoll clusters`, and what docs/backup-and-restore.md and docs/move-nodes.md promise.

mod nodes;
mod removal;
mod restore;
mod takeover;
mod upgrade;
mod world;

use std::sync::Arc;

use atoll_tests::HostCluster;
use libtest_mimic::Trial;

use crate::case;
use crate::trial::trial;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("clusters::a_removed_cluster_leaves_nothing", host, removal::leaves_nothing),
        case("clusters::namespaces_are_taken_over", host, takeover::of_namespaces),
        case("clusters::a_restored_cluster_keeps_its_identity", host, restore::keeps_the_identity),
        case("clusters::an_upgrade_cuts_only_sessions", host, upgrade::cuts_only_sessions),
        trial("clusters::nodes_move", nodes::move_between_clusters),
    ]
}
