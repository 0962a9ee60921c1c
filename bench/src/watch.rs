//! Fan-out: many watches on the ConfigMaps of one namespace, and a writer that changes some of them so many times a
//! second. How long a change takes to reach each watcher, from the moment at which it is sent, and whether one is lost.
//!
//! Reading order: `deliveries` (what came and what did not), `stamp` (the sending time inside the object), `writer`,
//! `watcher`, `report`.

mod deliveries;
mod report;
mod stamp;
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
use writer::{Desk, Writer};

/// Watch ConfigMaps many times while they change, and report the delay of the changes and which are lost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kubeconfig of the watchers: server, proxy-url, CA and credential of its current context, all inline.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The kubeconfig of the writer, if it is another one: the same ConfigMaps by another route.
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
    /// The time after which a missing change counts as lost at the end.
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

/// The number of ConfigMaps that change. Each has its own worker, because writes of one object wait for each other.
const OBJECTS: u32 = 16;
/// The timeout for all watches to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of stored changes.
const MOST_CHANGES: u64 = 1_000_000;

pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let changes = args.duration.as_secs().max(1) * u64::from(args.rate.get());
    ensure!(changes <= MOST_CHANGES, "{changes} changes are too many; {MOST_CHANGES} is the most");
    let version = if args.http == "2" { Version::Http2 } else { Version::Http1 };
    let watching = Target::of_kubeconfig(&args.kubeconfig, version)?;
    let writer = args.writer_kubeconfig.as_ref().unwrap_or(&args.kubeconfig);
    let writing = Target::of_kubeconfig(writer, Version::Http2)?;
    let namespace = args.writer_namespace.as_ref().unwrap_or(&args.namespace);
    let mut processes = args.processes.clone();
    processes.push(NamedProcess::own());

    let tasks = Tasks::new();
    let desk = Desk::open(writing, tasks.clone(), namespace).await?;
    let result = measure(&args, &watching, &desk, &tasks, &processes).await;
    // What was made is taken away whether or not it went well.
    let cleared = desk.clear(OBJECTS).await;
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
    desk: &Arc<Desk>,
    tasks: &Tasks,
    processes: &[NamedProcess],
) -> anyhow::Result<Report> {
    let epoch = Instant::now();
    desk.set_out(OBJECTS).await?;
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
        for connection in connection.several(shared.min(args.watchers - number)) {
            let watcher = Watcher { target: watching.clone(), uri: uri.clone(), epoch, grace: args.grace };
            watchers.spawn(watcher.run(connection, Arc::clone(&written), opened.clone()));
        }
    }
    drop(opened);
    for _ in 0..args.watchers {
        let begun = timeout(BEGIN_TIMEOUT, open.recv()).await.context("the watches do not begin")?;
        if begun.is_none() {
            // One that cannot begin drops its end; its error is the result.
            written.close();
            while let Some(joined) = watchers.join_next().await {
                joined.context("a watcher")??;
            }
            bail!("a watch did not begin");
        }
    }

    let before = usages(processes)?;
    let writers =
        (0..OBJECTS).map(|object| Writer::new(Arc::clone(desk), object, Arc::clone(&written), epoch)).collect();
    let limits = Limits { duration: args.duration, requests: MOST_CHANGES, timeout: Duration::from_secs(20) };
    let (writes, _) = pace::run(writers, Pace::Open(args.rate), limits).await;
    written.close();
    let mut reports = Vec::new();
    while let Some(joined) = watchers.join_next().await {
        reports.push(joined.context("a watcher")??);
    }
    let after = usages(processes)?;
    let usages = processes.iter().zip(before.into_iter().zip(after));
    Ok(Report::new(&writes, &written, &reports, usages))
}

fn usages(processes: &[NamedProcess]) -> anyhow::Result<Vec<crate::process::Usage>> {
    processes.iter().map(NamedProcess::usage).collect()
}
