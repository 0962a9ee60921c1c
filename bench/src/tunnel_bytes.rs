//! What crosses the tunnel: for a member of Karmada to which nothing happens, and for a list.
//!
//! The agent dials a relay, which counts the bytes in both directions, with TLS and without the headers of TCP and IP. Each
//! part is measured by itself, with the tunnel of an agent that never compresses and of one that always does.
//!
//! Reading order: `relay` (counting), `karmada` (what an idle member is sent), `table` (the output).

mod karmada;
mod relay;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::Method;
use ops::drain::Tasks;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::load::time;
use crate::site::{Host, Member, Site};
use relay::Relay;
use table::{Measured, Table};

/// Count the bytes that cross the tunnel for an idle member of Karmada, and for a list.
///
/// Build the components of the host with `tests/kube/build`, and Atoll with `cargo build --release -p proxy-server
/// -p proxy-agent -p atoll`. Run the command in the root of the repository. It takes about nine minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench bytes --dir /tmp/bytes")]
pub(crate) struct Args {
    /// The directory for all files and logs. It must not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The time for which each part of an idle member is measured. It should be much longer than a watch, which lasts 32 s.
    #[arg(long, value_name = "TIME", default_value = "80s", value_parser = time)]
    seconds: Duration,
    /// The number of `ConfigMaps` in the list.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    objects: u32,
    /// The folder of the release binaries proxy-server, proxy-agent and atoll.
    #[arg(long, value_name = "DIR", default_value = "target/release", env = "ATOLL_BIN_DIR")]
    bin: PathBuf,
    /// The folder of the scripts `up` and `down`, which start and stop the host.
    #[arg(long, value_name = "DIR", default_value = "tests/kube")]
    kube: PathBuf,
    /// The folder of etcd, kube-apiserver, kubectl, kwok and the other components of the host.
    #[arg(long, value_name = "DIR", default_value = "target/kube/bin")]
    kube_bin: PathBuf,
}

/// A virtual cluster with the two nodes that `tests/kube/up` creates in this location.
const CLUSTER: &str = "beijing";
/// The time in which a new tunnel and new watches settle.
const SETTLE: Duration = Duration::from_secs(15);
const READY_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) async fn run(mut args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    ensure!(args.seconds >= Duration::from_secs(1), "--seconds must be at least 1s");
    for dir in [&mut args.bin, &mut args.kube, &mut args.kube_bin] {
        *dir = dir.canonicalize().with_context(|| format!("{}; see --help", dir.display()))?;
    }
    std::fs::create_dir(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    args.dir = args.dir.canonicalize()?;

    let tasks = Tasks::new();
    let table = tokio::select! {
        table = measure(&args, &tasks) => table,
        signal = ops::drain::signal() => Err(anyhow::anyhow!("interrupted by {}", signal?)),
    };
    tasks.drain(Duration::from_secs(1), std::future::pending::<()>()).await;
    Ok(write!(out, "{}", table?)?)
}

async fn measure(args: &Args, tasks: &Tasks) -> anyhow::Result<Table> {
    let started = Instant::now();
    say(started, "starting the host");
    let host = Host::start(&args.kube, &args.kube_bin, &args.dir.join("host"), &[], tasks)?;
    let mut columns = Vec::new();
    for compression in ["never", "always"] {
        say(started, &format!("compression: {compression}"));
        let dir = args.dir.join(compression);
        let (kubeconfig, clusters) = (host.agent_kubeconfig(), vec![CLUSTER.to_owned()]);
        let keys = format!("compression: {compression}");
        let mut site = Site::start(&args.bin, &dir, &kubeconfig, clusters, &keys, tasks).await?;
        let relay = Relay::start(site.agents, tasks).await?;
        site.start_agent(relay.port, READY_TIMEOUT).await?;
        let [member] = &site.members[..] else { anyhow::bail!("the site has not one cluster") };
        if columns.is_empty() {
            say(started, &format!("creating {} ConfigMaps", args.objects));
            create(&host.admin, args.objects).await?;
        }
        sleep(SETTLE).await;
        columns.push(column(args, member, &relay, started).await?);
    }
    let columns = columns.try_into().map_err(|_| anyhow::anyhow!("not two columns"))?;
    Ok(Table { objects: args.objects, seconds: args.seconds, columns })
}

/// All parts, with one configuration of the agent.
async fn column(args: &Args, member: &Arc<Member>, relay: &Relay, started: Instant) -> anyhow::Result<Measured> {
    say(started, "measuring the tunnel alone");
    let before = relay.bytes();
    sleep(args.seconds).await;
    let idle = relay.bytes() - before;

    say(started, "measuring health checks and discovery");
    // The proxy-server gets each document once. This is not part of a day.
    karmada::round(member).await?;
    let before = relay.bytes();
    karmada::rounds(member, args.seconds).await?;
    let rounds = relay.bytes() - before;

    say(started, "measuring watches");
    let watches = karmada::Watches::open(member).await?;
    let measuring = async {
        sleep(SETTLE).await;
        let before = relay.bytes();
        sleep(args.seconds).await;
        relay.bytes() - before
    };
    let watches = tokio::select! {
        ended = watches.renew(member) => match ended? {},
        measured = measuring => measured,
    };

    say(started, "measuring a list");
    let before = relay.bytes();
    let list = member.succeed(Method::GET, "/api/v1/namespaces/default/configmaps", String::new()).await?;
    let list_length = u64::try_from(list.len())?;
    Ok(Measured { idle, rounds, watches, list: relay.bytes() - before, list_length })
}

/// Creates `ConfigMaps` like those that Helm charts contain: a configuration file, most of whose text differs between objects.
async fn create(admin: &Member, objects: u32) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/default-{CLUSTER}/configmaps");
    for number in 0..objects {
        let lines =
            (0..20).map(|line| format!("server.{line}.address=10.{}.{line}.{}:8080", number / 250, number % 250));
        let file: Vec<String> = lines.collect();
        let metadata = json!({"name": format!("settings-{number}"), "labels": {"app.kubernetes.io/part-of": "shop"}});
        admin
            .create(&path, &json!({"metadata": metadata, "data": {"application.properties": file.join("\n")}}))
            .await?;
    }
    Ok(())
}

/// Reports the progress.
#[expect(clippy::print_stderr, reason = "standard error is for the user")]
fn say(started: Instant, text: &str) {
    eprintln!("{:.1} s: {text}", started.elapsed().as_secs_f64());
}
