//! Measures Atoll: the rewriting engine against `serde_json` and `memcpy`, and requests and watches through Atoll
//! against direct access.
//!
//! Compare only ratios of one run on one machine. Absolute figures depend on the machine. What is *not* here: starting
//! clusters and proxies for `load` and `watch` (`bench/hops` does this, with the files of an operator), and limits for the
//! figures.
//!
//! Reading order: [`target`] and [`client`] (sending requests), [`latencies`] and [`process`] (measuring), [`load`],
//! [`watch`], [`scale`] and [`tunnel_bytes`] ([`site`]: what they start), [`storm`] ([`child`]: processes), [`upstream`], [`link`],
//! [`send`], [`micro`] ([`pods`]: the objects).

mod allocations;
mod child;
mod client;
mod latencies;
mod link;
mod load;
mod micro;
mod pods;
mod process;
mod scale;
mod send;
mod site;
mod storm;
mod target;
mod tunnel_bytes;
mod upstream;
mod watch;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measure Atoll. Exits with 0 on success, with 1 on failure, and with 2 if the flags are invalid.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Micro(micro::Args),
    Load(Box<load::Args>),
    Watch(Box<watch::Args>),
    Scale(Box<scale::Args>),
    Upstream(upstream::Args),
    Send(Box<send::Args>),
    Storm(storm::Args),
    Bytes(tunnel_bytes::Args),
    Link(link::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // `bench ... | head`: the reader needs no more output.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let mut out = io::stdout();
    match command {
        Command::Micro(args) => micro::run(&args, &mut out)?,
        Command::Load(args) => runtime(args.threads())?.block_on(load::run(*args, &mut out))?,
        Command::Watch(args) => runtime(None)?.block_on(watch::run(*args, &mut out))?,
        Command::Scale(args) => runtime(None)?.block_on(scale::run(*args, &mut out))?,
        Command::Upstream(args) => runtime(None)?.block_on(upstream::run(args, &mut out))?,
        Command::Send(args) => runtime(Some(1))?.block_on(send::run(*args, &mut out))?,
        Command::Storm(args) => runtime(None)?.block_on(storm::run(&args, &mut out))?,
        Command::Bytes(args) => runtime(None)?.block_on(tunnel_bytes::run(args, &mut out))?,
        // Standard input may block a thread of the runtime for ever.
        Command::Link(args) => {
            let runtime = runtime(Some(1))?;
            let done = runtime.block_on(link::run(&args, &mut out));
            runtime.shutdown_background();
            done?;
        }
    }
    Ok(out.flush()?)
}

/// Starts a runtime. The default number of threads is the number of processors.
fn runtime(threads: Option<usize>) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().context("cannot start threads")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "standard error is for the user")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("bench: {error:#}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_flag_is_explained() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
