//! The `proxy-server` binary: flags, logs, run until a signal.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use ops::drain::Signals;
use ops::log;
use proxy_server::flags::Flags;
use proxy_server::{App, ProxyServerConfiguration};
use tracing::{error, info};

/// glibc returns large buffers to the kernel as soon as they are free, and gets them again with page faults for the next
/// request. Its thresholds (`mallopt`) would help, but can be set only by unsafe code or by the environment.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Requests run on the threads of `proxy_server::workers`. One thread is enough for everything else.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run()),
        Err(error) => refuse(&error),
    }
}

async fn run() -> ExitCode {
    let flags = Flags::parse();
    let _logging = match log::init(flags.log_format, flags.log.as_deref(), log::Color::default()) {
        Ok(logging) => logging,
        Err(error) => return refuse(&error),
    };
    let config = match ops::config::load::<ProxyServerConfiguration>(&flags.config) {
        Ok(config) => config,
        Err(errors) => return refuse(&errors),
    };
    match serve(&config, &flags.config).await {
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
    let proxy_server::app::Bound { proxy, endpoint, agents, probes, admin, metrics } = app.bound;
    let metrics = metrics.map(tracing::field::display);
    info!(%proxy, %endpoint, %agents, %probes, %admin, metrics, "ready");
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
