//! `atoll demo`: proxy-server and proxy-agent in one process, and a host cluster unless the user names one.
//!
//! It writes the files that an operator writes: certificates, two configurations, and a kubeconfig for the agent. Then
//! it runs [`proxy_server::App`] and [`proxy_agent::App`], which connect over TCP and TLS as in production. `atoll
//! kubeconfig` and the binaries can use the files in its directory.
//!
//! Reading order: [`Args`], [`run`], `clusters` (the virtual clusters), `host` (the host cluster), `ports` and `files`
//! (the preparations), `ready` (waits for the clusters with `client`), `output`.

mod client;
mod clusters;
mod files;
mod host;
mod output;
mod ports;
mod ready;

use std::io::Write;
use std::path::PathBuf;

use dial::Egress;
use ops::config::load;
use ops::drain::Signals;
use ops::listen::BindError;
use ops::log;
use tokio_util::sync::CancellationToken;

use clusters::CLUSTERS;
use files::Files;
use host::Host;
use ports::{PortBase, Ports};

/// The log filter of proxy-server and proxy-agent without `RUST_LOG`: only messages that require an action.
const LOG_FILTER: &str = "warn";
/// The same on dev-apiserver. The demo has already warned that nothing on it is secure.
const DEV_HOST_LOG_FILTER: &str = "warn,virtual_cluster::admission_policies=error";

/// Try Atoll: run two virtual clusters on one host cluster, in one process.
///
/// Runs a proxy-server and a proxy-agent. By default, the host cluster is dev-apiserver, an API server in memory that
/// runs no containers. With --kubeconfig, it is an existing cluster. Nodes with the label location=beijing belong to
/// ke-beijing, and nodes with location=hangzhou to ke-hangzhou. Pods of both tolerate the taint
/// node-role.kubernetes.io/edge. The command writes certificates, configurations and kubeconfigs to DIR, and prints
/// `ready` on a separate line when both virtual clusters work. Ctrl-C stops it.
///
/// On an existing cluster, the command creates namespaces with the label atoll.dev/virtual-cluster or atoll.dev/root,
/// and admission policies with the label atoll.dev/gate. It does not change other namespaces. The policies apply to the
/// namespaces of virtual clusters, and prevent nodes from changing their own label `location`. All these objects stay
/// when the demo ends. It prints the commands that remove them.
///
/// Exits with 0 after Ctrl-C, and with 1 if it fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Use a simulated host cluster\n  \
    atoll demo\n\n  \
    # Use free ports and another directory\n  \
    atoll demo --dir /tmp/atoll --port-base 0\n\n  \
    # Use an existing host cluster\n  \
    atoll demo --kubeconfig ~/.kube/config")]
pub(crate) struct Args {
    /// A kubeconfig of a host cluster. Its current context is used, and its user must be an administrator.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The directory for certificates, configurations and kubeconfigs. The demo reuses the CAs of an earlier run.
    #[arg(long, value_name = "DIR", default_value = ".atoll")]
    dir: PathBuf,

    /// The first of seven consecutive ports to listen on; 0 picks free ports. The default ports are 8090, 8443, 8091,
    /// 8092 and 8095 for proxy-server, and 8093 and 8094 for proxy-agent. dev-apiserver always uses a free port.
    #[arg(long, value_name = "N")]
    port_base: Option<PortBase>,
}

/// Runs until it gets a signal.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let default = if args.kubeconfig.is_some() { LOG_FILTER } else { DEV_HOST_LOG_FILTER };
    let filter = std::env::var_os(log::FILTER_VARIABLE).is_none().then_some(default);
    let _logging = log::init(log::Format::Text, filter, log::Color::Auto)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, out))
}

async fn serve(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut signals = Signals::install()?;
    let ports = Ports::choose(args.port_base)?;
    ports.check()?;
    let host = Host::find(args.kubeconfig.as_deref()).await?;
    output::host(&host, out)?;
    let files = Files::prepare(&args.dir, &host.accounts(), ports)?;
    output::prepared(&files, out)?;

    let config = load(&files.server_config())?;
    let server = proxy_server::App::bind(&config, &files.server_config()).await.map_err(with_remedy)?;
    let config = load(&files.agent_config())?;
    let agent = proxy_agent::App::bind(&config, &files.agent_config(), Egress::default()).await.map_err(with_remedy)?;
    output::listening(&files, out)?;

    // The first signal stops everything after a grace period; the second one ends the grace period.
    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let signals = async {
        signals.recv().await;
        stop.cancel();
        signals.recv().await;
        hurry.cancel();
    };
    let report = async {
        let reported = tokio::select! {
            reported = report_readiness(&host, &files, out) => reported,
            () = stop.cancelled() => Ok(()),
        };
        // If nobody reads the output any more, the demo ends.
        if reported.is_err() {
            stop.cancel();
        }
        reported
    };
    let all = async {
        tokio::join!(
            agent.run(stop.cancelled(), hurry.cancelled()),
            server.run(stop.cancelled(), hurry.cancelled()),
            report
        )
        .2
    };
    let reported = tokio::select! {
        reported = all => reported,
        () = async { signals.await; std::future::pending().await } => unreachable!("it waits forever"),
    };
    reported?;
    output::ended(&host, &files, out)?;
    host.end(hurry.cancelled()).await;
    Ok(())
}

/// Prints a line when each cluster works, then `ready`.
async fn report_readiness(host: &Host, files: &Files, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut nodes = Vec::new();
    for cluster in CLUSTERS {
        let found = ready::wait(files, cluster, out).await?;
        output::works(cluster, found, out)?;
        nodes.push((cluster, found));
    }
    output::ready(host, files, &nodes, out)?;
    std::future::pending().await
}

/// Adds the remedy if another process has bound a port since `Ports::check`.
fn with_remedy(error: anyhow::Error) -> anyhow::Error {
    if error.is::<BindError>() {
        return error.context(format!("a port is in use; {}", ports::REMEDY));
    }
    error
}

#[cfg(test)]
mod tests;
