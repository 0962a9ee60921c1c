//! Changes of configurations and credentials while proxy-server and agent run.

mod clusters;
mod credentials;
mod names;
mod pod_security;
mod revocations;
mod watch;

use std::sync::Arc;

use atoll_tests::HostCluster;
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("reload::a_cluster_is_added_and_removed", host, clusters::a_cluster_is_added_and_removed),
        case("reload::conflicting_names_are_refused", host, names::that_meet_are_refused),
        case("reload::namespaces_of_removed_clusters_stay", host, names::of_clusters_that_left_stay_theirs),
        case(
            "reload::names_that_were_shortened_otherwise_are_kept",
            host,
            names::that_were_shortened_otherwise_are_kept,
        ),
        case("reload::pod_security_is_enforced", host, pod_security::a_level_is_enforced),
        case("reload::stolen_credentials_are_revoked", host, revocations::stop_stolen_credentials),
        case("reload::credentials_are_replaced_during_a_watch", host, credentials::are_replaced_under_a_watch),
    ]
}
