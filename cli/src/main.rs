//! The operator's command: certificates, kubeconfigs, checks, and a demo in one process.
//!
//! There is one module per subcommand. Each takes its parsed flags and a writer, so that tests can read the output.
//! The same program is a plugin of kubectl ([`invocation`]). What is *not* here: anything that proxy-server and
//! proxy-agent do while they run. `atoll demo` runs them unmodified.

mod certs;
mod check;
mod clusters;
mod completions;
mod demo;
mod explain;
mod forward;
mod invocation;
mod kubeconfig;
mod lifetime;
mod login;
mod man;
mod programs;
mod revocation_list;
mod revoke;
mod status;
mod token;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use invocation::Invocation;

/// Create certificates and kubeconfigs for proxy-server and proxy-agent, check and explain their configurations, show
/// their status, or try them in a demo.
///
/// Exits with 0 on success, with 1 on failure, and with 2 if the flags are invalid. Some commands have further exit
/// codes; see their help.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
#[command(after_help = "Examples:\n  \
    # Try Atoll with two virtual clusters on a simulated host\n  \
    atoll demo\n\n  \
    # Check a configuration before you start proxy-server\n  \
    atoll check proxy-server.yaml\n\n  \
    # Show the status of a running proxy-server\n  \
    atoll status\n\n  \
    # Load completions into this shell\n  \
    source <(atoll completions bash)")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Certs(certs::Args),
    Kubeconfig(Box<kubeconfig::Args>),
    Login(login::Args),
    Token(token::Args),
    Revoke(revoke::Args),
    Check(check::Args),
    Status(status::Args),
    Explain(explain::Args),
    Clusters(clusters::Args),
    Forward(forward::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    let invocation = Invocation::current();
    let matches = invocation.flags(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Not locked: `atoll forward` writes from another thread.
    let mut out = io::stdout();
    let result = match cli.command {
        Command::Certs(args) => certs::run(&args, &mut out).map(done),
        Command::Kubeconfig(args) => kubeconfig::run(&args, &mut out).map(done),
        Command::Login(args) => login::run(&args, &mut out).map(done),
        Command::Token(args) => token::run(&args, &mut out).map(done),
        Command::Revoke(args) => revoke::run(&args, &mut out).map(done),
        Command::Check(args) => check::run(&args, &mut out),
        Command::Demo(args) => demo::run(&args, &mut out).map(done),
        Command::Status(args) => status::run(&args, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::Clusters(args) => clusters::run(&args, &mut out),
        Command::Forward(args) => forward::run(&args, &mut out),
        Command::Completions(args) => completions::run(&args, &Cli::command(), &mut out).map(done),
        Command::Man(args) => man::run(&args, &Cli::command(), &mut out).map(done),
    };
    match result.and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => code,
        // `atoll ... | head`: the reader needs no more output.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error, invocation),
    }
}

/// The exit code of a command that reports only by its output.
fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "standard error is for the user")]
fn fail(error: &anyhow::Error, invocation: Invocation) -> ExitCode {
    eprintln!("{}: {}", invocation.typed(), invocation.text(&format!("{error:#}"), &Cli::command()));
    // Exit code 1 means that something is not ready.
    if error.is::<status::Unreachable>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command) {
            let has_examples = command.get_after_help().is_some_and(|help| help.to_string().starts_with("Examples:\n"));
            assert!(has_examples || command.has_subcommands(), "{} has no examples", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
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
