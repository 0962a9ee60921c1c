//! The operator's command: certificates, kubeconfigs, checks, and a trial of everything in one process.
//!
//! One module per subcommand. Each takes its parsed flags and writes to the output it is given, so that tests read what
//! people read. What is *not* here: anything that the binaries do while they run; `atoll demo` runs them as they are.

mod certs;
mod check;
mod completions;
mod demo;
mod explain;
mod kubeconfig;
mod lifetime;
mod man;
mod namespaces;
mod programs;
mod status;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes what a set-up of proxy-server and proxy-agent needs, certificates and kubeconfigs, checks it, or makes a whole
/// set-up to try.
///
/// Ends with 0 if all went well, with 1 if something failed, with 2 if the flags make no sense. Where a command has more
/// to say by its end, its help says so.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
#[command(after_help = "Examples:\n  \
    atoll demo                                      see two clusters in one\n  \
    atoll check proxy-server.yaml                   before a start\n  \
    atoll status                                    after it\n  \
    source <(atoll completions bash)                for this shell")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Certs(certs::Args),
    Kubeconfig(Box<kubeconfig::Args>),
    Check(check::Args),
    Status(status::Args),
    Explain(explain::Args),
    Namespaces(namespaces::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::stdout().lock();
    let result = match cli.command {
        Command::Certs(args) => certs::run(&args, &mut out).map(done),
        Command::Kubeconfig(args) => kubeconfig::run(&args, &mut out).map(done),
        Command::Check(args) => check::run(&args, &mut out),
        Command::Demo(args) => demo::run(&args, &mut out).map(done),
        Command::Status(args) => status::run(&args, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::Namespaces(args) => namespaces::run(&args, &mut out).map(done),
        Command::Completions(args) => completions::run(&args, &mut out).map(done),
        Command::Man(args) => man::run(&args, &mut out).map(done),
    };
    match result.and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => code,
        // `atoll ... | head`: who reads has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// All that a command has to say is in its output.
fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "the person at the terminal is who has to know")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("atoll: {error:#}");
    // Not "something is not ready", which is 1.
    if error.is::<status::Unreachable>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

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
