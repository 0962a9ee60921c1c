//! Sends requests to the API server of a host through the agent's client, to check it by hand against a real one.
//!
//! ```text
//! cargo run -p host-client --example host-get -- KUBECONFIG PATH                  prints the response
//! cargo run -p host-client --example host-get -- KUBECONFIG PATH --watch N        opens N watches of PATH, then sends N GETs
//! cargo run -p host-client --example host-get -- KUBECONFIG PATH --every MILLIS   sends a GET every MILLIS ms, and prints which server responds
//! cargo run -p host-client --example host-get -- KUBECONFIG PATH --follow         prints the changes of the objects of a list
//! ```
//! `--server URL` names another API server of the same cluster. It can be repeated.
#![expect(clippy::print_stdout, reason = "for the person at the terminal")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use host_client::api::{Api, Change, Reflector, Selection};
use host_client::config;
use host_client::{Host, HostBody, HostBodyError, Statistics, empty};
use http::Request;
use http_body_util::BodyExt as _;
use ops::drain::Tasks;
use ops::files::Reloader;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval};

#[derive(Debug, Parser)]
struct Args {
    kubeconfig: PathBuf,
    path: String,
    #[arg(long, value_name = "N")]
    watch: Option<usize>,
    #[arg(long, value_name = "MILLIS")]
    every: Option<u64>,
    #[arg(long)]
    follow: bool,
    #[arg(long, value_name = "URL")]
    server: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let _logging = ops::log::init(ops::log::Format::Text, None, ops::log::Color::default())?;
    let (tasks, reloader) = (Tasks::new(), Reloader::new(Reloader::DEFAULT_PERIOD));
    let config = config::Host {
        kubeconfig: Some(args.kubeconfig.clone().into()),
        servers: args.server.iter().cloned().map(Into::into).collect(),
        ..config::Host::default()
    };
    let host = Host::open(&config, &reloader, tasks.clone()).context("cannot use the configuration")?;
    match (args.watch, args.every) {
        (Some(watches), _) => crowd(&host, &tasks, &args.path, watches).await?,
        (None, Some(millis)) => forever(&host, &args.path, Duration::from_millis(millis)).await,
        (None, None) if args.follow => follow(&host, &args.path).await,
        (None, None) => println!("{}", String::from_utf8_lossy(&get(&host, &args.path).await?)),
    }
    drop(host);
    println!("{:?}", tasks.drain(Duration::from_secs(5), std::future::pending::<()>()).await);
    Ok(())
}

async fn get(host: &Host, path: &str) -> anyhow::Result<Vec<u8>> {
    let request = Request::get(path).body(empty())?;
    let response = host.send(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
    Ok(bytes.to_vec())
}

/// Opens the watches, and keeps them open while it sends as many GETs at once.
async fn crowd(host: &Host, tasks: &Tasks, path: &str, n_watches: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let (opened, mut watches) = mpsc::channel(n_watches.max(1));
    for _ in 0..n_watches {
        let (host, opened, path) = (host.clone(), opened.clone(), format!("{path}?watch=true&timeoutSeconds=300"));
        tasks.spawn("watch", async move {
            drop(opened.send(first_event(&host, &path).await).await);
        });
    }
    drop(opened);
    let mut kept = Vec::new();
    while let Some(watch) = watches.recv().await {
        kept.push(watch?);
    }
    println!("{} watches had their first event after {:?}", kept.len(), began.elapsed());
    show(&host.statistics());

    let began = Instant::now();
    let (answered, mut answers) = mpsc::channel(n_watches.max(1));
    for _ in 0..n_watches {
        let (host, answered, path) = (host.clone(), answered.clone(), path.to_owned());
        tasks.spawn("get", async move {
            let began = Instant::now();
            let result = get(&host, &path).await;
            drop(answered.send(result.map(|_| began.elapsed())).await);
        });
    }
    drop(answered);
    let mut latencies = Vec::new();
    while let Some(latency) = answers.recv().await {
        latencies.push(latency?);
    }
    latencies.sort_unstable();
    println!("{} GETs after {:?}, the slowest {:?}", latencies.len(), began.elapsed(), latencies.last());
    show(&host.statistics());
    let before = Instant::now();
    get(host, path).await?;
    println!("one GET beside the watches: {:?}", before.elapsed());
    drop(kept);
    println!("watches dropped");
    show(&host.statistics());
    Ok(())
}

async fn first_event(host: &Host, path: &str) -> anyhow::Result<HostBody> {
    let response = host.send(Request::get(path).body(empty())?).await?;
    let (status, mut body) = (response.status(), response.into_body());
    let first = body.frame().await.context("the watch ended at once")?;
    let first = first.map_err(|error: HostBodyError| error)?.into_data().unwrap_or_default();
    anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&first));
    Ok(body)
}

async fn forever(host: &Host, path: &str, period: Duration) {
    let mut ticks = interval(period);
    let began = Instant::now();
    loop {
        ticks.tick().await;
        let sent = Instant::now();
        let result = get(host, path).await;
        let outcome = result.map_or_else(|error| format!("{error:#}"), |bytes| format!("{} bytes", bytes.len()));
        let statistics = host.statistics();
        let up: Vec<_> = statistics.servers.iter().map(|server| server.up).collect();
        println!("{:?} {outcome} in {:?}, up {up:?}, retries {}", began.elapsed(), sent.elapsed(), statistics.retries);
    }
}

async fn follow(host: &Host, path: &str) {
    let mut reflector = Reflector::new(&Api::new(host.clone()), path, Selection::default());
    let began = Instant::now();
    loop {
        let (what, object) = match reflector.next().await {
            Change::Applied(object) => ("applied", object),
            Change::Deleted(object) => ("deleted", object),
            Change::Synced => ("synced", serde_json::Value::Null),
        };
        println!("{:?} {what} {}", began.elapsed(), object["metadata"]["name"].as_str().unwrap_or_default());
    }
}

fn show(statistics: &Statistics) {
    println!(
        "  in flight {}, retries {}, connections begun {}, failed {}, open {}",
        statistics.in_flight,
        statistics.retries,
        statistics.connections_begun,
        statistics.connections_failed,
        statistics.connections_open
    );
    for server in &statistics.servers {
        println!("  {} up {} connections {} streams {}", server.address, server.up, server.connections, server.streams);
    }
}
