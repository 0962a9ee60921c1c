//! The `proxy-server` binary: flags, logs, run until a signal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ops::drain::Signals;
use ops::log;
use proxy_server::{App, ProxyServerConfiguration};
use tracing::{error, info};

/// The cloud half of Atoll: gives each cluster an endpoint and reaches it through the tunnel that its agent dialled.
///
/// Ends with 64 if the configuration is refused, with 1 if something else fails. SIGTERM drains: listeners close,
/// connections may end for as long as `drain` says; a second signal ends at once. SIGHUP reads certificates
/// and the list of clusters again.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The configuration: a YAML file with a document of kind ProxyServerConfiguration. Every key is described in
    /// configs/proxy-server.yaml.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The form of log lines: `text` for people, `json` for machines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: log::Format,

    /// What is logged, for example `info` or `info,proxy_server=debug`. Overrides RUST_LOG.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let _logging = match log::init(args.log_format, args.log.as_deref(), log::Color::default()) {
        Ok(logging) => logging,
        Err(error) => return refuse(&error),
    };
    let config = match ops::config::load::<ProxyServerConfiguration>(&args.config) {
        Ok(config) => config,
        Err(errors) => return refuse(&errors),
    };
    match serve(&config, &args.config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "the proxy-server cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: &ProxyServerConfiguration, file: &Path) -> anyhow::Result<()> {
    let mut signals = Signals::install()?;
    let app = App::bind(config, file).await?;
    let proxy_server::app::Bound { proxy, endpoint, agents, probes, admin } = app.bound;
    info!(%proxy, %endpoint, %agents, %probes, %admin, "ready");
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
