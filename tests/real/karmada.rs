//! Members of a real Karmada control plane in push mode, joined by `karmadactl join`.
//!
//! The checks of a member also run on a plain cluster, for comparison. All tests share two control planes, each with one
//! host, a proxy-server, an agent and two virtual clusters: one for members that karmadactl joins, and one for members that
//! join by themselves.

mod auto;
mod away;
mod commands;
mod idle;
mod kinds;
mod member;
mod metrics;
mod pair;
mod shared;
mod token;
mod twins;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use atoll_tests::{HostCluster, Karmada, Route, VirtualSite};
use libtest_mimic::Trial;

use crate::physical::site_with_branch;
use crate::trial::trial;
use member::Member;

const BEIJING: &str = "ke-beijing";
const HANGZHOU: &str = "ke-hangzhou";
/// The clusters of the edge-cluster proposal, and the locations of their nodes.
const CLUSTERS: [(&str, &str); 2] = [(BEIJING, "beijing"), (HANGZHOU, "hangzhou")];

/// The time limit for a change by Karmada, whose queues back off after a failure.
const SETTLED: Duration = Duration::from_secs(60);

/// The shared state of the tests. They run one after the other, because Karmada creates each namespace in every member.
#[derive(Default)]
struct World {
    site: OnceLock<anyhow::Result<VirtualSite>>,
    turn: Mutex<()>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let case = |world: &Arc<World>, name: &str, run: fn(&VirtualSite) -> anyhow::Result<()>| {
        let world = Arc::clone(world);
        trial(format!("karmada::{name}"), move || world.run(run))
    };
    let (joined, auto) = (Arc::<World>::default(), Arc::<World>::default());
    let many = auto::many::members().map(|members| {
        trial("karmada::many_members_out_of_one_host", move || auto::many::many_members_out_of_one_host(members))
    });
    let mut trials = vec![
        // The longest tests begin first, and those of the two worlds alternate, so that few wait for each other.
        trial("karmada::two_members_stay_ready_and_quiet", idle::two_members_stay_ready_and_quiet),
        case(&joined, "a_site_is_away_for_long", away::a_site_is_away_for_long),
        case(&auto, "members_join_and_stay_current_by_themselves", auto::members_join_and_stay_current_by_themselves),
        case(&joined, "a_plain_cluster_is_a_member", a_plain_cluster_is_a_member),
        case(&joined, "a_physical_cluster_is_a_member", a_physical_cluster_is_a_member),
        case(&joined, "a_virtual_cluster_is_a_member", a_virtual_cluster_is_a_member),
        case(&auto, "one_of_two_proxy_servers_is_enough", auto::replicas::one_of_two_proxy_servers_is_enough),
        case(&joined, "a_virtual_cluster_is_a_member_without_a_proxy", a_virtual_cluster_is_a_member_without_a_proxy),
        case(&joined, "what_is_shared_reaches_both", shared::what_is_shared_reaches_both),
        case(&joined, "two_members_out_of_one_host", twins::two_members_out_of_one_host),
        case(&auto, "what_karmadactl_joined_is_taken_over", auto::what_karmadactl_joined_is_taken_over_and_left_to_it),
        case(&joined, "every_kind_of_work_arrives", kinds::every_kind_of_work_arrives),
        case(&joined, "commands_work_on_members", commands::commands_work_on_members),
    ];
    trials.extend(many);
    trials
}

// === impl World ===

impl World {
    fn run(&self, run: fn(&VirtualSite) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let site = self.site.get_or_init(|| VirtualSite::on(HostCluster::up_with_karmada()?, &CLUSTERS));
        run(site.as_ref().map_err(|error| anyhow!("the site did not start: {error:?}"))?)
    }
}

fn a_plain_cluster_is_a_member(site: &VirtualSite) -> anyhow::Result<()> {
    let member = Member { name: "plain", nodes: 4, context: "host", kubectl: site.host().kubectl() };
    member.comes_and_goes(&Karmada::beside(site.host()))
}

/// The same cluster behind a tunnel, with a `proxy-url` that `join` copies.
fn a_physical_cluster_is_a_member(site: &VirtualSite) -> anyhow::Result<()> {
    let (branch, _agent) = site_with_branch(site.host())?;
    let kubectl = branch.physical(site.host().kubectl().kubeconfig())?;
    Member { name: "branch-7", nodes: 4, context: "host", kubectl }.comes_and_goes(&Karmada::beside(site.host()))
}

fn a_virtual_cluster_is_a_member(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    Member { name: BEIJING, nodes: 2, context: BEIJING, kubectl }.comes_and_goes(&Karmada::beside(site.host()))
}

fn a_virtual_cluster_is_a_member_without_a_proxy(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(HANGZHOU, Route::Path)?;
    Member { name: HANGZHOU, nodes: 2, context: HANGZHOU, kubectl }.comes_and_goes(&Karmada::beside(site.host()))
}
