//! `atoll clusters`: what virtual clusters have on a host, and how an operator removes, saves and restores it.
//!
//! The commands use only the API server of the host; proxy-server and proxy-agent need not run. `docs/host-objects.md` lists what
//! there is. Reading order: [`inventory`] (what a virtual cluster has), [`declaration`] (who still wants it), [`list`], [`remove`],
//! [`export`], [`adopt`].

mod adopt;
mod declaration;
mod document;
mod export;
mod format;
mod host;
mod inventory;
mod kinds;
mod list;
mod progress;
mod remove;
mod yaml;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

/// List, remove, export or adopt what virtual clusters have on their host.
///
/// When you remove a virtual cluster from the configurations, its objects stay on the host. These commands use only the
/// API server of the host. proxy-server and proxy-agent need not run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Remove(remove::Args),
    Export(export::Args),
    Adopt(adopt::Args),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.command {
            Command::List(args) => list::run(args, out).await,
            Command::Remove(args) => remove::run(args, out).await,
            Command::Export(args) => export::run(args, out).await,
            Command::Adopt(args) => adopt::run(args, out).await,
        }
    })
}
