//! `atoll revoke`: certificates that the proxy-server refuses from now on.
//!
//! The commands add a line to the file that `revocations:` of the proxy-server's configuration names. What is *not* here: the
//! effect of the file, which is in `proxy_server::revocations`.

mod agent;
mod certificate;
mod list_args;
mod user;

use std::io::Write;

use clap::Subcommand;

/// Revoke the certificates of an agent or of a user, for example because a key was stolen.
///
/// The commands add a line to the file that `revocations` in the proxy-server's configuration names. Within ten seconds, the
/// proxy-server refuses these certificates, and closes the connections that use them. Certificates that are issued later are
/// accepted. If you have several proxy-servers, copy the file to each of them.
///
/// Bearer tokens are tokens of the host cluster. To revoke one, delete its Secret, ServiceAccount or pod there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(agent::Args),
    User(user::Args),
    Certificate(certificate::Args),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Agent(args) => agent::run(args, out),
        Command::User(args) => user::run(args, out),
        Command::Certificate(args) => certificate::run(args, out),
    }
}

#[cfg(test)]
mod tests;
