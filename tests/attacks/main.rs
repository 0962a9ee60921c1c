//! What attacks on virtual clusters cost: the memory of Atoll, and the latency of another tenant.
//!
//! Each attack has its own proxy-server and agent, on one host. They start as in the suites on real components: release
//! binaries in separate processes, and the agent has the rights of `configs/kubernetes/agent-rbac.yaml`. One virtual
//! cluster is the attacker's. The administrator of the other one, the tenant, sends a fixed number of requests per
//! second, and does not wait for the responses. Phases without and with the attack alternate.
//!
//! Everything runs on one machine. So a ratio includes the work of the attacker, of Atoll, and of the host's API server
//! and etcd. The attacker's process has the lowest priority (nice 19), so that it takes little time from the others.
//! `--control` measures as many harmless requests, with which you can compare an attack.
//!
//! Lists are measured apart from the tenant's other requests, because they wait for other clients' writes (see
//! [`kubelets`]). The bound applies to both.
//!
//! Reading order: [`list`] (the attacks), [`attacker`] (who sends them), [`tenant`] (who is slowed down), [`report`].

mod attacker;
mod kubelets;
mod list;
mod report;
mod stage;
mod tenant;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use atoll_tests::HostCluster;
use clap::{Parser, Subcommand};

use kubelets::Kubelets;
use list::Attack;
use stage::Stage;

/// Attack virtual clusters, and measure the cost for Atoll and for another tenant.
///
/// Prints a line for each attack: the peak memory of both halves and of kube-apiserver, and the 99th percentile of
/// another tenant's latencies, without and with the attack. Exits with 1 if an attack exceeds a bound, which a line
/// `MISSED` names, or fails. Run it on an otherwise idle machine. CONTRIBUTING.md explains the table.
#[derive(Debug, Parser)]
#[command(name = "attacks", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    measure: Measure,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, Subcommand)]
enum Part {
    #[command(hide = true)]
    Perform(attacker::Args),
}

#[derive(Debug, clap::Args)]
struct Measure {
    /// Run only attacks whose names contain one of these texts.
    names: Vec<String>,
    /// List the attacks.
    #[arg(long)]
    list: bool,
    /// The duration of each phase, in seconds.
    #[arg(long, default_value = "10")]
    seconds: u64,
    /// The number of rounds, each with a phase without the attack and a phase with it.
    #[arg(long, default_value = "2")]
    rounds: u32,
    /// The number of requests per second of the other tenant.
    #[arg(long, default_value = "50")]
    rate: u32,
    /// The number of Leases to renew per second on the host, in all phases. Each kubelet renews its Lease every ten
    /// seconds, so 20 Leases stand for 200 nodes. 0 renews none.
    #[arg(long, default_value = "20")]
    leases: u32,
    /// Send harmless requests at the rate of the attack instead. Attacks that do not consist of complete requests stay.
    #[arg(long)]
    control: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.part {
        Some(Part::Perform(args)) => attacker::perform(&args).map(|()| true),
        None => cli.measure.run(),
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

// === impl Measure ===

impl Measure {
    /// Whether no bound was exceeded.
    fn run(&self) -> anyhow::Result<bool> {
        let wanted =
            |attack: &&Attack| self.names.is_empty() || self.names.iter().any(|name| attack.name.contains(name));
        let attacks: Vec<&Attack> = list::all().filter(wanted).collect();
        if self.list {
            for attack in attacks {
                say(&format!("{:<32}{}", attack.name, attack.about));
            }
            return Ok(true);
        }
        let host = Arc::new(HostCluster::up(1)?);
        let kubelets = (self.leases > 0).then(|| Kubelets::begin(&host, self.leases)).transpose()?;
        say(&format!("{}", report::Header { is_control: self.control }));
        let mut kept = true;
        for (number, attack) in attacks.into_iter().enumerate() {
            let row = Stage::new(&host, number, attack).and_then(|stage| stage.measure(self));
            match row {
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

    fn phase(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Prints a line at once.
fn say(line: &str) {
    // If the reader has closed the pipe, it needs no more lines.
    let _ = writeln!(std::io::stdout(), "{line}");
}
