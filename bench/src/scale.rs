//! Many virtual clusters on a real host cluster: how long they take to become ready, what they cost while nothing
//! happens, and what an event costs.
//!
//! For each number of clusters, and for each configuration of the agent, a run starts its own host (`tests/kube/up`), a
//! proxy-server and an agent, and ends them. All of them listen on loopback only.
//!
//! Reading order: `args`, `case` (the phases of a run), `informer` (`frame`, `ledger`), `writer`, `pods`, `cpu`, `audit` and
//! `metrics` (measuring), `report`, `table`.

mod args;
mod audit;
mod case;
mod cpu;
mod frame;
mod informer;
mod ledger;
mod metrics;
mod pods;
mod report;
mod resource;
mod table;
mod writer;

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

pub(crate) use args::Args;
use report::{CaseReport, Report};
use resource::Resource;
use writer::MAX_EVENTS;

/// The programs of Atoll that a run starts.
const PROGRAMS: [&str; 3] = ["proxy-server", "proxy-agent", "atoll"];

pub(crate) async fn run(mut args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let events = args.seconds.as_secs().max(1) * u64::from(args.events_per_second.get());
    ensure!(events <= MAX_EVENTS, "{events} events are more than the maximum of {MAX_EVENTS}");
    ensure!(args.informer_resources().iter().any(Resource::has_events), "no informer watches v1/configmaps");
    for program in PROGRAMS {
        ensure!(args.bin.join(program).exists(), "{program} is not in {}; see --help", args.bin.display());
    }
    // The processes of a run have other working directories.
    for dir in [&mut args.bin, &mut args.kube, &mut args.kube_bin] {
        *dir = dir.canonicalize().with_context(|| format!("{}; see --help", dir.display()))?;
    }
    std::fs::create_dir(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    args.dir = args.dir.canonicalize()?;

    let mut report = Report {
        processors: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        settings: args.settings(),
        cases: Vec::new(),
    };
    tokio::select! {
        result = run_all(&args, &mut report) => result?,
        signal = ops::drain::signal() => {
            // Dropping the current run has ended its processes.
            write!(out, "{report}")?;
            bail!("interrupted by {}", signal?);
        }
    }
    write!(out, "{report}")?;
    let failed = report.cases.iter().filter(|case| case.failed.is_some()).count();
    ensure!(failed == 0, "{failed} of {} runs failed", report.cases.len());
    Ok(())
}

async fn run_all(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    for &clusters in &args.clusters {
        for config in &args.agent_configs {
            let dir = args.dir.join(format!("{clusters}-{}", config.name));
            let (measured, failed) = match case::run(args, clusters, config, &dir).await {
                Ok(measured) => (Some(measured), None),
                Err(error) => (None, Some(format!("{error:#}"))),
            };
            report.cases.push(CaseReport { clusters, config: config.name.clone(), failed, measured });
            // After each run, so that an interrupted command leaves the results of the others.
            if let Some(file) = &args.json {
                write_json(file, report).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
    }
    Ok(())
}

fn write_json(file: &Path, report: &Report) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(std::fs::write(file, text)?)
}
