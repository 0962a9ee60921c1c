//! The `proxy-agent` binary: flags, logs, run until a signal.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use dial::Egress;
use ops::drain::Signals;
use ops::log;
use proxy_agent::flags::Flags;
use proxy_agent::join::ensure_identity;
use proxy_agent::{App, ProxyAgentConfiguration};
use tracing::{error, info};

/// glibc returns large buffers to the kernel as soon as they are free, and gets them again with page faults for the next
/// request. Its thresholds (`mallopt`) would help, but can be set only by unsafe code or by the environment.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let _logging = match log::init(flags.log_format, flags.log.as_deref(), log::Color::default()) {
        Ok(logging) => logging,
        Err(error) => return refuse(&error),
    };
    let mut config = match ops::config::load::<ProxyAgentConfiguration>(&flags.config) {
        Ok(config) => config,
        Err(errors) => return refuse(&errors),
    };
    if !flags.servers.is_empty() {
        config.servers = flags.servers.iter().cloned().map(Into::into).collect();
    }
    if flags.join.is_some() {
        config.join.get_or_insert_default();
    }
    let egress = match Egress::new(flags.https_proxy.as_deref(), flags.no_proxy.as_deref()) {
        Ok(egress) => egress,
        Err(error) => return refuse(&error),
    };
    match serve(&config, &flags, egress).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "the proxy-agent cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: &ProxyAgentConfiguration, flags: &Flags, egress: Egress) -> anyhow::Result<()> {
    let mut signals = Signals::install().context("cannot listen for signals")?;
    if config.join.is_some() {
        tokio::select! {
            joined = ensure_identity(config, flags.join.as_deref(), &egress) => joined?,
            _ = signals.recv() => return Ok(()),
        }
    }
    let app = App::bind(config, &flags.config, egress).await?;
    let proxy_agent::app::Bound { probes, admin, metrics } = app.bound;
    let metrics = metrics.map(tracing::field::display);
    info!(agent = %app.agent, %probes, %admin, metrics, "dialling");
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
