//! What attacks on virtual clusters cost: the memory of Atoll, and the time of another tenant.
//!
//! Each attack has a proxy-server and an agent of its own, on one host, as the suites on real components start them: release
//! binaries, separate processes, the agent with the rights of `configs/kubernetes/agent-rbac.yaml`. One virtual cluster is
//! the attacker's. The other one's administrator sends a fixed number of requests a second, whatever comes back, in phases
//! without and with the attack, one after the other and again.
//!
//! What a ratio includes: everything runs on one machine, so the attack's own work is in it, and so is the work that it
//! makes for the host's API server and etcd. The attacker's process has the least priority (nice 19), so that what it
//! computes itself takes little from the others; of Atoll's and the host's work nothing is left out. `--control` says what
//! as many harmless requests cost, which is what a ratio of an attack can be compared with.
//!
//! Lists are told apart from the tenant's other requests, because they wait for other people's writes (see [`kubelets`]): the
//! bound holds for both.
//!
//! Reading order: [`list`] (what is done), [`attacker`] (who does it), [`tenant`] (who suffers), [`report`].

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

/// Attack virtual clusters, and measure the cost for Atoll and for another tenant. Exits with 1 if a bound is exceeded.
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
    /// The number of Leases that are renewed per second on the host in all phases: as by the kubelets of ten times as many
    /// nodes. 0 for none.
    #[arg(long, default_value = "20")]
    leases: u32,
    /// Instead of each attack that consists of requests, send the same number of harmless requests.
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
                say(&format!("{:<24}{}", attack.name, attack.about));
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
                    say(&format!("{:<24}FAILED: {error:?}", attack.name));
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
    // Whoever closed the pipe has seen enough.
    let _ = writeln!(std::io::stdout(), "{line}");
}
