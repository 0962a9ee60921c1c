//! Measures Atoll: the engine beside `serde_json` and `memcpy`.
//!
//! Only ratios of one run on one machine mean anything; absolute figures are printed as information. What is *not* here:
//! judging the figures.
//!
//! Reading order: [`allocations`], [`pods`] (what is listed), [`micro`].

mod allocations;
mod micro;
mod pods;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures Atoll. Ends with 0 if all went well, with 1 if something failed, with 2 if the flags make no sense.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Micro(micro::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // `bench ... | head`: who reads has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let mut out = io::stdout();
    match command {
        Command::Micro(args) => micro::run(&args, &mut out)?,
    }
    Ok(out.flush()?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "the person at the terminal is who has to know")]
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
