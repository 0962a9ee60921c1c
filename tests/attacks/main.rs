//! What attacks on virtual clusters cost: the memory of Atoll, and the latency of another tenant.
//!
//! Each attack has its own proxy-server and agent, on one host. They start as in the suites on real components: release
//! binaries in separate processes, and the agent has the rights of `configs/kubernetes/agent-rbac.yaml`. One virtual
//! cluster is the attacker's. The administrator of the other one, the tenant, sends a fixed number of requests per
//! second, and does not wait for the responses. Phases without and with the attack alternate.
//!
//! Everything runs on one machine. So a ratio includes the work of the attacker, of Atoll, and of the host's API server
//! and etcd. The attacker's process has the lowest priority (nice 19), so that it uses little time that others need.
//! `--control` measures as many harmless requests, with which you can compare an attack.
//!
//! Lists are measured apart from the tenant's other requests, because they wait for other clients' writes (see
//! [`kubelets`]). The bound applies to both.
//!
//! Reading order: [`mod@measure`] (the phases), [`traffic`] and [`attack`] (what an attack is), [`list`] (all attacks),
//! [`attacker`] (the process that performs an attack), [`tenant`], [`site`], [`report`].

mod attack;
mod attacker;
mod kubelets;
mod list;
mod measure;
mod process;
mod report;
mod site;
mod tenant;
mod traffic;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_tests::HostCluster;
use clap::{Parser, Subcommand};

use attack::Attack;
use kubelets::Kubelets;
use measure::{Options, measure};
use site::AttackSite;

/// Attack virtual clusters, and measure the cost for Atoll and for another tenant.
///
/// Prints a line for each attack: the peak memory of both halves and of kube-apiserver, and the 99th percentile of
/// another tenant's latencies, without and with the attack. Exits with 1 if an attack exceeds a bound, which a line
/// `MISSED` names, or fails. Run it on an otherwise idle machine. CONTRIBUTING.md explains the table.
#[derive(Debug, Parser)]
#[command(name = "attacks", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(hide = true)]
    Perform(attacker::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Some(Command::Perform(args)) => perform(&args).map(|()| true),
        None => run(&cli.options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("attacks: {error:?}"));
            ExitCode::FAILURE
        }
    }
}

/// Performs one attack, in the attacker's process.
fn perform(args: &attacker::Args) -> anyhow::Result<()> {
    let attack = list::all().find(|attack| attack.name == args.attack).context("no such attack")?;
    attacker::perform(args, (attack.traffic)())
}

/// Measures the attacks. Returns whether no bound was exceeded.
fn run(options: &Options) -> anyhow::Result<bool> {
    let wanted =
        |attack: &&Attack| options.names.is_empty() || options.names.iter().any(|name| attack.name.contains(name));
    let attacks: Vec<&Attack> = list::all().filter(wanted).collect();
    if options.list {
        for attack in attacks {
            say(&format!("{:<32}{}", attack.name, attack.about));
        }
        return Ok(true);
    }
    let host = Arc::new(HostCluster::up_alone()?);
    let kubelets = (options.leases > 0).then(|| Kubelets::begin(&host, options.leases)).transpose()?;
    say(&format!("{}", report::Header { is_control: options.control }));
    let mut kept = true;
    for (number, attack) in attacks.into_iter().enumerate() {
        match AttackSite::new(&host, number).and_then(|site| measure(&site, attack, options)) {
            Ok(row) => {
                kept &= row.misses().is_empty();
                say(&format!("{row}"));
            }
            Err(error) => {
                kept = false;
                say(&format!("{:<32}FAILED: {error:?}", attack.name));
            }
        }
    }
    kubelets.map_or(Ok(()), Kubelets::end)?;
    Ok(kept)
}

/// Prints a line at once.
fn say(line: &str) {
    // If the reader has closed the pipe, it needs no more lines.
    let _ = writeln!(std::io::stdout(), "{line}");
}
