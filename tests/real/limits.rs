//! A client that requests too much, or does not read its responses, does not affect others.
//!
//! Each trial has its own proxy-server and agent, because it measures their memory.

mod bodies;
mod connections;
mod custom;
mod floods;
mod flows;
mod heads;
mod limited;
mod lists;
mod objects;
mod storage;
mod watches;

use std::sync::Arc;

use anyhow::Context as _;
use anyhow::ensure;
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Nodes, VirtualSite};
use libtest_mimic::Trial;

use crate::trial::trial;

/// The maximum additional memory of the proxy-server or the agent, in bytes.
const COST: u64 = 128 << 20;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    let case = |name: &str, run: fn(Arc<HostCluster>) -> anyhow::Result<()>| {
        let host = host.map(Arc::clone);
        trial(format!("limits::{name}"), move || run(host.context("no host cluster while listing")?))
    };
    vec![
        case("unauthenticated_clients_block_nobody", floods::unauthenticated_clients_block_nobody),
        case("unauthenticated_uploads_use_little_memory", floods::unauthenticated_uploads_use_little_memory),
        case("idle_connections_are_closed", connections::silent_ones_end),
        case("idle_connections_are_closed_for_new_ones", connections::idle_ones_make_room),
        case("a_cluster_has_its_part_of_the_connections", connections::a_cluster_has_its_part),
        case("requests_that_are_reset_are_limited", floods::resets_are_limited),
        case("requests_that_are_reset_at_once_all_count", floods::resets_at_once_all_count),
        case("long_headers_break_no_connection", heads::break_no_connection),
        case("a_cluster_is_one_flow", flows::a_cluster_is_one),
        case("lists_that_nobody_reads_are_bounded", lists::that_nobody_reads_are_bounded),
        case("watches_from_version_zero_use_ten_seats", watches::from_version_zero_use_ten_seats),
        case("costly_short_bodies_are_limited", bodies::short_ones_are_weighed),
        case("samples_of_large_bodies_come_first", bodies::samples_come_first),
        case("aliases_are_expanded_within_bounds", bodies::aliases_are_expanded_within_bounds),
        case("objects_of_many_values_are_limited", objects::of_many_values_are_limited),
        case("objects_that_fill_the_memory_are_refused", objects::that_fill_the_memory_are_refused),
        case("stored_objects_are_limited", storage::objects_are_limited),
        case("stored_bytes_are_limited", storage::bytes_are_limited),
        case("cluster_scoped_objects_are_limited", custom::cluster_scoped_objects_are_limited),
        case("cluster_scoped_versions_are_limited", custom::cluster_scoped_versions_are_limited),
        case("hidden_fields_count", custom::hidden_fields_count),
        case("briefly_shown_fields_count", custom::briefly_shown_fields_count),
        case("written_bytes_are_limited", storage::versions_are_limited),
    ]
}

/// Two virtual clusters on the shared host, `NAME-a` and `NAME-b`.
fn site(host: Arc<HostCluster>, name: &str, keys: &str) -> anyhow::Result<(VirtualSite, String, String)> {
    let (a, b) = (format!("{name}-a"), format!("{name}-b"));
    let clusters = [(a.as_str(), Nodes::Location("beijing")), (b.as_str(), Nodes::Location("hangzhou"))];
    Ok((VirtualSite::with(host, &clusters, keys)?, a, b))
}

/// The memory of both processes before an attack.
struct Memory<'s> {
    halves: [(&'s Process, u64); 2],
}

impl<'s> Memory<'s> {
    fn measure(site: &'s VirtualSite) -> anyhow::Result<Self> {
        let before = |half: &'s Process| anyhow::Ok((half, half.memory()?));
        Ok(Self { halves: [before(&site.site().server)?, before(site.agent())?] })
    }

    /// Fails if the peak of one of them is much higher.
    fn is_bounded(&self) -> anyhow::Result<()> {
        for (half, before) in self.halves {
            let cost = half.peak()?.saturating_sub(before);
            ensure!(cost < COST, "{half:?} took {} MB more than the {} MB before", cost >> 20, before >> 20);
        }
        Ok(())
    }
}
