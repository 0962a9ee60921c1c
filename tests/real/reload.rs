//! What changes while both halves run, and what must not notice.

mod clusters;
mod watch;

use std::sync::Arc;

use atoll_tests::HostCluster;
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![case("reload::a_cluster_comes_and_goes", host, clusters::a_cluster_comes_and_goes)]
}
