//! The order of the phases, and what is measured in them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use atoll_tests::process::{memory, peak};

use crate::attack::Attack;
use crate::attacker::Args;
use crate::process::AttackerProcess;
use crate::report::Row;
use crate::site::AttackSite;
use crate::tenant::Outcome;

/// The time in which the tenant opens connections and fills caches, before the measurement.
const WARM_UP: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only attacks whose names contain one of these texts.
    pub(crate) names: Vec<String>,
    /// List the attacks.
    #[arg(long)]
    pub(crate) list: bool,
    /// The duration of each phase, in seconds.
    #[arg(long, default_value = "10")]
    pub(crate) seconds: u64,
    /// The number of rounds, each with a phase without the attack and a phase with it.
    #[arg(long, default_value = "2")]
    pub(crate) rounds: u32,
    /// The number of requests per second of the other tenant.
    #[arg(long, default_value = "50")]
    pub(crate) rate: u32,
    /// The number of Leases to renew per second on the host, in all phases. Each kubelet renews its Lease every ten
    /// seconds, so 20 Leases stand for 200 nodes. 0 renews none.
    #[arg(long, default_value = "20")]
    pub(crate) leases: u32,
    /// Send harmless requests at the rate of the attack instead. Attacks that do not consist of complete requests stay.
    #[arg(long)]
    pub(crate) control: bool,
    /// Also print the 50th, 90th and 99th percentiles of each kind of the tenant's requests.
    #[arg(long)]
    pub(crate) by_request: bool,
}

/// Prepares the attack, then alternates phases without and with it.
pub(crate) fn measure(site: &AttackSite, attack: &Attack, options: &Options) -> anyhow::Result<Row> {
    let (rate, phase) = (options.rate, Duration::from_secs(options.seconds));
    site.tenant.work(rate, WARM_UP, &mut Outcome::default())?;
    let processes = [site.site.agent().id(), site.site.site().server.id(), site.host_api_server()?];
    let mut idle = [0; 3];
    for (idle, process) in idle.iter_mut().zip(processes) {
        *idle = memory(process)?;
    }
    (attack.prepare)(site).context("cannot prepare the attack")?;
    let (mut without, mut with) = (Outcome::default(), Outcome::default());
    let mut responses = BTreeMap::new();
    for _ in 0..options.rounds {
        site.tenant.work(rate, phase, &mut without)?;
        let attacker = AttackerProcess::start(&arguments(site, attack, options))?;
        site.tenant.work(rate, phase, &mut with)?;
        for (response, times) in attacker.wait()? {
            *responses.entry(response).or_default() += times;
        }
    }
    let mut above = [0; 3];
    for (number, process) in processes.into_iter().enumerate() {
        // A process that has ended has no memory.
        above[number] = peak(process).context("a process has ended")?.saturating_sub(idle[number]);
    }
    let [agent, server, host] = above;
    let (max_ratio, by_request) = (attack.max_ratio, options.by_request);
    Ok(Row { name: attack.name, max_ratio, responses, agent, server, host, without, with, by_request })
}

/// The flags of the attacker's process.
fn arguments(site: &AttackSite, attack: &Attack, options: &Options) -> Args {
    let ports = site.site.site().ports;
    Args {
        attack: attack.name.to_owned(),
        endpoint: ports.endpoint,
        proxy: ports.proxy,
        cluster: site.cluster.clone(),
        admin: site.admin.kubeconfig().to_owned(),
        user: site.user.kubeconfig().to_owned(),
        seconds: options.seconds,
        control: options.control,
    }
}
