//! `atoll demo`: both halves in one process, to show virtual clusters; and a host cluster, if the user names none.
//!
//! It does what an operator does, with the files that an operator writes: certificates, two configurations, and an
//! account for the agent. Then it runs [`proxy_server::App`] and [`proxy_agent::App`], which connect over TCP and TLS
//! as in production. `atoll kubeconfig` and the binaries can use the files in its directory.
//!
//! Reading order: [`Args`], [`run`], `clusters` (the virtual clusters), `host` (the host cluster), `ports` and `files` (the
//! preparations), `ready` (waits for the clusters with `client`), `words` (the output).

mod client;
mod clusters;
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

use clusters::CLUSTERS;
use files::Files;
use host::Host;
use ports::{PortBase, Ports};

/// The log filter for both halves without `RUST_LOG`: only messages that require an action.
const LOG: &str = "warn";
/// The same for a toy, about which the demo has already warned that nothing on it is secure.
const LOG_ON_A_TOY: &str = "warn,virtual_cluster::admission_policies=error";

/// Try Atoll: two virtual clusters on one host cluster, in one process.
///
/// Runs a proxy-server and a proxy-agent, and a host cluster to divide: dev-apiserver, a toy in memory that has no
/// requirements and runs no containers; or, with --kubeconfig, an existing cluster. Nodes with the label
/// location=beijing belong to ke-beijing, and nodes with location=hangzhou to ke-hangzhou; their pods tolerate the
/// taint node-role.kubernetes.io/edge. Writes certificates, configurations and kubeconfigs to DIR. Prints `ready` on a
/// line of its own when everything works. Ctrl-C stops it.
///
/// On an existing cluster, it creates namespaces with the label atoll.dev/virtual-cluster or atoll.dev/root, and
/// admission policies with the label atoll.dev/gate. It does not change other namespaces. The policies apply to the
/// namespaces of virtual clusters, and no longer let a node change its own label `location`. All these objects stay
/// when the demo ends, and it prints the commands that remove them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll demo\n  \
    atoll demo --dir /tmp/atoll --port-base 0\n  \
    atoll demo --kubeconfig ~/.kube/config")]
pub(crate) struct Args {
    /// A kubeconfig of a host cluster. Its current context is used, and its user must be an administrator.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The directory for certificates, configurations and kubeconfigs. CAs of an earlier run are used again.
    #[arg(long, value_name = "DIR", default_value = ".atoll")]
    dir: PathBuf,

    /// Listen on N, N+1, ... N+6 instead of 8090, 8443, 8091, 8092, 8095 (proxy-server), 8093, 8094 (proxy-agent). 0
    /// picks free ports. dev-apiserver always uses a free port.
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
        // Nobody reads the output any more, so the demo ends.
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
        () = async { signals.await; std::future::pending().await } => unreachable!("it waits forever"),
    };
    told?;
    words::ended(&host, &files, out)?;
    host.end(hurry.cancelled()).await;
    Ok(())
}

/// Prints when each cluster works, and `ready`.
async fn tell(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut nodes = Vec::new();
    for cluster in CLUSTERS {
        let found = ready::wait(files, cluster, out).await?;
        words::works(cluster, found, out)?;
        nodes.push((cluster, found));
    }
    words::ready(host, files, &nodes, out)?;
    std::future::pending().await
}

/// Another process has bound a port since `Ports::check`.
fn port_is_taken(error: anyhow::Error) -> anyhow::Error {
    if error.is::<BindError>() {
        return error.context(format!("a port is in use; {}", ports::REMEDY));
    }
    error
}

#[cfg(test)]
mod tests;
