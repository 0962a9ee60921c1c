//! Fan-out: many watches on the ConfigMaps of one namespace, and a writer that changes some of them at a fixed rate.
//! Measures the time from sending a change to its arrival at each watcher, and counts lost changes.
//!
//! Reading order: `deliveries` (received and lost changes), `stamp` (the sending time inside an object), `writer`,
//! `watcher`, `report`.

mod deliveries;
mod report;
pub(crate) mod stamp;
mod watcher;
mod writer;

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use ops::drain::Tasks;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::load::{Limits, Pace, pace, time};
use crate::process::NamedProcess;
use crate::target::{Target, Version};
use deliveries::Written;
use report::Report;
use watcher::Watcher;
use writer::{ConfigMaps, Writer};

/// Watch ConfigMaps many times while they change, and report the delay of changes and the number of lost changes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kubeconfig of the watchers: server, proxy-url, CA and credential of its current context, all inline.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The kubeconfig of the writer, if it uses another route to the same ConfigMaps.
    #[arg(long, value_name = "FILE")]
    writer_kubeconfig: Option<PathBuf>,
    /// The namespace for the watchers. It must exist.
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// The name of the same namespace for the writer.
    #[arg(long, value_name = "NAME")]
    writer_namespace: Option<String>,
    /// The number of concurrent watches.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    watchers: u32,
    /// The number of changes per second.
    #[arg(long, value_name = "N", default_value = "20")]
    rate: NonZeroU32,
    /// The time in which changes are written.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
    /// The time after the last change in which all changes must arrive. Others count as lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    grace: Duration,
    /// HTTP/1.1 or HTTP/2.
    #[arg(long, default_value = "2", value_parser = ["1", "2"])]
    http: String,
    /// The number of watches that share an HTTP/2 connection.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=200))]
    per_connection: u32,
    /// Report the CPU time and memory of this process and its descendants. Can be given several times.
    #[arg(long = "process", value_name = "NAME=PID")]
    processes: Vec<NamedProcess>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The number of ConfigMaps that change. Each has its own worker, because concurrent writes of one object would wait.
const OBJECTS: u32 = 16;
/// The time limit until all watches have begun.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of changes.
const MAX_CHANGES: u64 = 1_000_000;

pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let changes = args.duration.as_secs().max(1) * u64::from(args.rate.get());
    ensure!(changes <= MAX_CHANGES, "{changes} changes are more than the maximum of {MAX_CHANGES}");
    let version = if args.http == "2" { Version::Http2 } else { Version::Http1 };
    let watching = Target::of_kubeconfig(&args.kubeconfig, version)?;
    let writer = args.writer_kubeconfig.as_ref().unwrap_or(&args.kubeconfig);
    let writing = Target::of_kubeconfig(writer, Version::Http2)?;
    let namespace = args.writer_namespace.as_ref().unwrap_or(&args.namespace);
    let mut processes = args.processes.clone();
    processes.push(NamedProcess::own());

    let tasks = Tasks::new();
    let config_maps = ConfigMaps::open(writing, tasks.clone(), namespace).await?;
    let result = measure(&args, &watching, &config_maps, &tasks, &processes).await;
    // Delete the objects even if the measurement failed.
    let cleared = config_maps.delete(OBJECTS).await;
    tasks.drain(Duration::from_secs(1), std::future::pending::<()>()).await;
    let report = result?;
    cleared?;
    if args.json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(())
}

async fn measure(
    args: &Args,
    watching: &Target,
    config_maps: &Arc<ConfigMaps>,
    tasks: &Tasks,
    processes: &[NamedProcess],
) -> anyhow::Result<Report> {
    let epoch = Instant::now();
    config_maps.create(OBJECTS).await?;
    let path = format!("/api/v1/namespaces/{}/configmaps", args.namespace);
    let version = watcher::resource_version(watching, tasks, &path).await?;
    let longest = args.duration + args.grace + Duration::from_secs(60);
    let uri = watching.uri(&format!(
        "{path}?watch=true&allowWatchBookmarks=true&labelSelector={}&resourceVersion={version}&timeoutSeconds={}",
        writer::SELECTOR,
        longest.as_secs()
    ))?;

    let written = Arc::new(Written::new());
    let shared = if watching.version == Version::Http2 { args.per_connection } else { 1 };
    let (opened, mut open) = mpsc::channel(1);
    let mut watchers = JoinSet::new();
    for number in (0..args.watchers).step_by(shared as usize) {
        let connection = watcher::connect(watching, tasks).await?;
        for connection in connection.handles(shared.min(args.watchers - number)) {
            let watcher = Watcher { target: watching.clone(), uri: uri.clone(), epoch, grace: args.grace };
            watchers.spawn(watcher.run(connection, Arc::clone(&written), opened.clone()));
        }
    }
    drop(opened);
    for _ in 0..args.watchers {
        let begun = timeout(BEGIN_TIMEOUT, open.recv()).await.context("the watches have not begun in time")?;
        if begun.is_none() {
            // A watcher has ended. Report its error.
            written.close();
            while let Some(joined) = watchers.join_next().await {
                joined.context("a watcher failed")??;
            }
            bail!("a watch did not begin");
        }
    }

    let before = usages(processes)?;
    let writers =
        (0..OBJECTS).map(|object| Writer::new(Arc::clone(config_maps), object, Arc::clone(&written), epoch)).collect();
    let limits = Limits { duration: args.duration, requests: MAX_CHANGES, timeout: Duration::from_secs(20) };
    let (writes, _) = pace::run(writers, Pace::Open(args.rate.into()), limits).await;
    written.close();
    let mut reports = Vec::new();
    while let Some(joined) = watchers.join_next().await {
        reports.push(joined.context("a watcher failed")??);
    }
    let after = usages(processes)?;
    let usages = processes.iter().zip(before.into_iter().zip(after));
    Ok(Report::new(&writes, &written, &reports, usages))
}

fn usages(processes: &[NamedProcess]) -> anyhow::Result<Vec<crate::process::Usage>> {
    processes.iter().map(NamedProcess::usage).collect()
}
