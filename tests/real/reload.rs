//! What changes while both halves run, and what must not notice.

mod clusters;
mod credentials;
mod names;
mod pod_security;
mod watch;

use std::sync::Arc;

use atoll_tests::HostCluster;
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("reload::a_cluster_comes_and_goes", host, clusters::a_cluster_comes_and_goes),
        case("reload::names_that_meet_are_refused", host, names::that_meet_are_refused),
        case("reload::names_of_clusters_that_left_stay_theirs", host, names::of_clusters_that_left_stay_theirs),
        case(
            "reload::names_that_were_shortened_otherwise_are_kept",
            host,
            names::that_were_shortened_otherwise_are_kept,
        ),
        case("reload::pod_security_is_enforced", host, pod_security::a_level_is_enforced),
        case("reload::credentials_are_replaced_under_a_watch", host, credentials::are_replaced_under_a_watch),
    ]
}
