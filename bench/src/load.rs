//! Sends many requests, and measures their rate, their latency and their cost.
//!
//! *Closed loop*: each of `--concurrency` workers sends the next request after the complete response to the previous one. So a
//! slow server gets fewer requests, and a pause of the server affects only one request of each worker (coordinated
//! omission).
//! *Open loop* (`--rate`): the schedule of the requests does not depend on the server, and a latency counts from the scheduled
//! time. Up to a millisecond of it is the delay of this program's timer. `service` is the time from sending a request.
//!
//! Reading order: `schedule` (when to send), `pace` (the loops), `exchange` (one request), `stalled` (readers that do
//! not read), `report`.

mod exchange;
pub(crate) mod pace;
mod report;
mod schedule;
mod stalled;

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use ops::drain::Tasks;

use crate::process::{NamedProcess, Usage};
use crate::target::{TargetArgs, Version};
use exchange::HttpExchange;
pub(crate) use pace::{Limits, Pace};
use report::Report;
use stalled::Stalled;

/// Send GET requests to one target, and report the rate of responses, the latencies and the cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Send requests with 32 workers for 10 seconds\n  \
    bench load --url https://127.0.0.1:8443/version --ca ca.crt\n\n  \
    # Send 100 requests per second to the cluster of a kubeconfig\n  \
    bench load --kubeconfig ke-beijing.kubeconfig --path /api/v1/nodes --rate 100")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// The maximum number of concurrent requests.
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: u32,
    /// The number of HTTP/2 connections that share them. With HTTP/1.1, each concurrent request has its own connection.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4096))]
    connections: u32,
    /// The time in which the command sends new requests. Requests in flight may end later.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
    /// The maximum number of requests.
    #[arg(long, value_name = "N", default_value = "100000000")]
    requests: u64,
    /// Open loop: the number of requests per second, independent of the responses.
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
    /// Open a new connection for each request.
    #[arg(long)]
    fresh: bool,
    /// The warm-up time before the measurement, to open connections and fill caches.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    warmup: Duration,
    /// The timeout of one request, including its connection.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    timeout: Duration,
    /// Report the CPU time and memory of this process and its descendants. Can be given several times.
    #[arg(long = "process", value_name = "NAME=PID")]
    processes: Vec<NamedProcess>,
    /// The number of threads of this program.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
    /// The number of readers that first request `--stalled-path`, each over its own connection, and never read the
    /// response.
    #[arg(long, value_name = "N", default_value = "0", requires = "stalled_path")]
    stalled: u32,
    /// The path of an object that is larger than all buffers on the route.
    #[arg(long, value_name = "PATH")]
    stalled_path: Option<String>,
    /// A name for this run in the report.
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Also print ratios to an earlier run: a file with the output of `--json`.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

// === impl Args ===

impl Args {
    pub(crate) fn threads(&self) -> Option<usize> {
        self.threads.map(usize::from)
    }
}

pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let target = args.target.resolve()?;
    let baseline = args.baseline.as_deref().map(Report::read).transpose()?;
    let mut processes = args.processes.clone();
    processes.push(NamedProcess::own());

    let tasks = Tasks::new();
    let connections = if target.version == Version::Http2 { args.connections } else { args.concurrency };
    let exchanges = HttpExchange::new(&target, &tasks, args.concurrency, connections, args.fresh)?;
    let pace = args.rate.map_or(Pace::Closed, |rate| Pace::Open(rate.into()));
    let limits = |duration| Limits { duration, requests: args.requests, timeout: args.timeout };

    let path = args.stalled_path.as_deref().unwrap_or_default();
    let stalled = Stalled::open(&target, path, args.stalled, &tasks).await?;
    let (warm, exchanges) = pace::run(exchanges, pace, limits(args.warmup)).await;
    ensure!(
        args.warmup.is_zero() || warm.succeeded() > 0,
        "the warm-up got no successful response: {}",
        warm.describe_failures()
    );
    let before = usages(&processes)?;
    let (outcome, exchanges) = pace::run(exchanges, pace, limits(args.duration)).await;
    let after = usages(&processes)?;
    drop((exchanges, stalled));
    tasks.drain(Duration::from_secs(2), std::future::pending::<()>()).await;

    let report =
        Report::new(&args.label, target.agreed_tls(), &outcome, processes.iter().zip(before.into_iter().zip(after)));
    if args.json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    if let Some(baseline) = baseline.filter(|_| !args.json) {
        write!(out, "{}", report.compare(&baseline))?;
    }
    ensure!(outcome.succeeded() > 0, "no successful response: {}", outcome.describe_failures());
    Ok(())
}

fn usages(processes: &[NamedProcess]) -> anyhow::Result<Vec<Usage>> {
    processes.iter().map(NamedProcess::usage).collect()
}

/// Parses a duration as in configuration files, of at most an hour.
pub(crate) fn time(text: &str) -> anyhow::Result<Duration> {
    let time = text.parse::<ops::config::Duration>()?.get();
    ensure!(time <= Duration::from_secs(3_600), "must be at most 1h");
    Ok(time)
}

#[cfg(test)]
mod tests;
