//! `atoll demo`: both halves in this process, to see what virtual clusters are; and a host cluster, if none is given.
//!
//! It does what an operator would do, with the files an operator would write: certificates, two configurations, an
//! account for the agent, and then [`proxy_server::App`] and [`proxy_agent::App`], which meet over TCP and TLS as
//! anywhere. What it leaves in its directory works with `atoll kubeconfig` and with the binaries.
//!
//! Reading order: [`Args`], [`run`], `host` (what is divided), `ports` and `files` (what there is before anything runs),
//! `ready` (what must work before it says so, by way of `client`), `words` (what is printed).

mod client;
mod files;
mod host;
mod ports;
mod ready;
mod words;

use std::io::Write;
use std::path::PathBuf;

use ops::config::load;
use ops::drain::Signals;
use ops::listen::BindError;
use ops::log;
use proxy_agent::dial::Egress;
use tokio_util::sync::CancellationToken;

use files::Files;
use host::Host;
use ports::{PortBase, Ports};

/// What of both halves is logged if `RUST_LOG` does not say: what somebody has to do something about.
const LOG: &str = "warn";
/// The same on a toy, of which it was said already that nothing on it is safe.
const LOG_ON_A_TOY: &str = "warn,proxy_agent::gate=error";

/// The identity of the agent.
const AGENT: &str = "demo";

/// A virtual cluster of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    name: &'static str,
    /// The value of the label `location` of its nodes.
    location: &'static str,
}

const SLICES: [Slice; 2] =
    [Slice { name: "ke-beijing", location: "beijing" }, Slice { name: "ke-hangzhou", location: "hangzhou" }];

/// Try it all: two virtual clusters out of one cluster, in one process.
///
/// Runs a proxy-server and a proxy-agent here, and a host cluster to divide: dev-apiserver, a toy in memory that needs
/// nothing and runs no containers; or, with --kubeconfig, a cluster of yours. ke-beijing is made of the nodes with the
/// label location=beijing, ke-hangzhou of those with location=hangzhou; their pods tolerate the taint
/// node-role.kubernetes.io/edge. DIR gets certificates, configurations and kubeconfigs. `ready` on a line of its own
/// says that all of it works; Ctrl-C ends it.
///
/// On a cluster of yours, namespaces with the label atoll.dev/virtual-cluster or atoll.dev/root are made, and no others
/// touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll demo\n  \
    atoll demo --dir /tmp/atoll --port-base 0\n  \
    atoll demo --kubeconfig ~/.kube/config")]
pub(crate) struct Args {
    /// A kubeconfig of a host cluster. Its current context is used, and must be that of an administrator.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Where certificates, configurations and kubeconfigs are kept; what an earlier run left is used again.
    #[arg(long, value_name = "DIR", default_value = ".atoll")]
    dir: PathBuf,

    /// Listen on N, N+1, ... N+6 instead of 8090, 8443, 8091, 8092, 8095 (proxy-server), 8093, 8094 (proxy-agent). 0
    /// takes free ports, as dev-apiserver does anyway.
    #[arg(long, value_name = "N")]
    port_base: Option<PortBase>,
}

/// Runs until a signal ends it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let default = if args.kubeconfig.is_some() { LOG } else { LOG_ON_A_TOY };
    let filter = std::env::var_os(log::FILTER_VARIABLE).is_none().then_some(default);
    let _logging = log::init(log::Format::Text, filter, log::Color::Auto)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(demonstrate(args, out))
}

async fn demonstrate(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut signals = Signals::install()?;
    let ports = Ports::choose(args.port_base)?;
    ports.check()?;
    let host = Host::find(args.kubeconfig.as_deref()).await?;
    words::host(&host, out)?;
    let files = Files::prepare(&args.dir, &host.accounts(), ports)?;
    words::prepared(&files, out)?;

    let config = load(&files.server_config())?;
    let server = proxy_server::App::bind(&config, &files.server_config()).await.map_err(port_is_taken)?;
    let config = load(&files.agent_config())?;
    let agent =
        proxy_agent::App::bind(&config, &files.agent_config(), Egress::default()).await.map_err(port_is_taken)?;
    words::listening(&files, out)?;

    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let signals = async {
        signals.recv().await;
        stop.cancel();
        signals.recv().await;
        hurry.cancel();
    };
    let tell = async {
        let told = tokio::select! {
            told = tell(&host, &files, out) => told,
            () = stop.cancelled() => Ok(()),
        };
        // Whoever would read it is gone, so nobody knows what runs here.
        if told.is_err() {
            stop.cancel();
        }
        told
    };
    let halves = async {
        tokio::join!(
            agent.run(stop.cancelled(), hurry.cancelled()),
            server.run(stop.cancelled(), hurry.cancelled()),
            tell
        )
        .2
    };
    let told = tokio::select! {
        told = halves => told,
        () = async { signals.await; std::future::pending().await } => unreachable!("it waits for ever"),
    };
    told?;
    words::ended(&host, &files, out)?;
    host.end(hurry.cancelled()).await;
    Ok(())
}

/// What it prints once it runs.
async fn tell(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut nodes = Vec::new();
    for slice in SLICES {
        let found = ready::wait(files, slice, out).await?;
        words::works(slice, found, out)?;
        nodes.push((slice, found));
    }
    words::ready(host, files, &nodes, out)?;
    std::future::pending().await
}

/// Somebody was faster since the ports were looked at.
fn port_is_taken(error: anyhow::Error) -> anyhow::Error {
    if error.is::<BindError>() {
        return error.context(format!("a port is taken; {}", ports::REMEDY));
    }
    error
}

#[cfg(test)]
mod tests;
