//! `atoll token`: join tokens for agents.
//!
//! The proxy-server issues a certificate to an agent that has a token. What is *not* here: the exchange, which is in
//! `protocol::enrolment` and `proxy_server::enrolment`.

mod create;
mod delete;
mod list;
mod store_args;

use std::io::Write;

use clap::Subcommand;

/// Create join tokens, with which agents get their certificates.
///
/// A new site needs no certificate, only a token: the agent creates its key, and the proxy-server certifies it. Run these
/// commands as the user of the proxy-server, on its machine: they write to the directory that `enrolment.tokens` in its
/// configuration names. The proxy-server does not need a restart.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Args),
    List(list::Args),
    Delete(delete::Args),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Create(args) => create::run(args, out),
        Command::List(args) => list::run(args, out),
        Command::Delete(args) => delete::run(args, out),
    }
}

#[cfg(test)]
mod tests;
