//! The `proxy-agent` binary: flags, logs, run until a signal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use ops::drain::Signals;
use ops::log;
use proxy_agent::dial::Egress;
use proxy_agent::{App, ProxyAgentConfiguration};
use tracing::{error, info};

/// The edge half of Atoll: dials the proxy-servers, so that nothing has to dial into the site, and serves what they ask
/// from the API server beside it.
///
/// Ends with 64 if the configuration is refused, with 1 if something else fails. SIGTERM drains: tunnels are closed when
/// their streams have ended, for at most as long as `drain` says; a second signal ends at once. SIGHUP reads
/// certificates, tokens and the list of virtual clusters again.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The configuration: a YAML file with a document of kind ProxyAgentConfiguration. Every key is described in
    /// configs/proxy-agent.yaml.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The form of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: log::Format,

    /// What is logged, for example `info` or `info,proxy_agent=debug`. Overrides RUST_LOG.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,

    /// The HTTP proxy through which proxy-servers are reached: http://[user:password@]host:port.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    https_proxy: Option<String>,

    /// Hosts and domains, separated by commas, that are reached without it.
    #[arg(long, value_name = "HOSTS", env = "NO_PROXY")]
    no_proxy: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let _logging = match log::init(args.log_format, args.log.as_deref(), log::Color::default()) {
        Ok(logging) => logging,
        Err(error) => return refuse(&error),
    };
    let config = match ops::config::load::<ProxyAgentConfiguration>(&args.config) {
        Ok(config) => config,
        Err(errors) => return refuse(&errors),
    };
    let egress = match Egress::new(args.https_proxy.as_deref(), args.no_proxy.as_deref()) {
        Ok(egress) => egress,
        Err(error) => return refuse(&error),
    };
    match serve(&config, &args.config, egress).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "the proxy-agent cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: &ProxyAgentConfiguration, file: &Path, egress: Egress) -> anyhow::Result<()> {
    let mut signals = Signals::install().context("cannot listen for signals")?;
    let app = App::bind(config, file, egress).await?;
    let proxy_agent::app::Bound { probes, admin } = app.bound;
    info!(agent = %app.agent, %probes, %admin, "dialling");
    let signals = tokio::sync::Mutex::new(&mut signals);
    let next = || async { signals.lock().await.recv().await };
    let drained = app.run(next(), next()).await;
    info!(?drained, "stopped");
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a usage error is for the person at the terminal, in no log's form")]
fn refuse(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(ops::config::EXIT_CODE)
}
