//! `atoll certs`: creates certificate authorities and certificates.
//!
//! One directory contains all of them: `serving-ca`, `agent-ca`, `clusters/C/client-ca`, `clusters/C/users/USER`,
//! `agents/ID`, each as `.crt` and `.key`. Existing files are replaced only with `--force`.

mod agent;
mod client;
mod cluster;
pub(crate) mod directory;
mod init;

use std::io::Write;

use clap::Subcommand;

/// Create certificate authorities and certificates.
///
/// Start with `atoll certs init DIR`. Then run `atoll certs cluster C --dir DIR` for each virtual cluster, and `atoll
/// certs agent ID --dir DIR` for each agent. Each command prints the files that it wrote, and the lines to add to the
/// configurations.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Create the CAs of an installation, then the files for a virtual cluster and an agent\n  \
    atoll certs init /etc/atoll\n  \
    atoll certs cluster ke-beijing --dir /etc/atoll\n  \
    atoll certs agent site-a --dir /etc/atoll")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Cluster(cluster::Args),
    Agent(agent::Args),
    Client(client::Args),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Init(args) => init::run(args, out),
        Command::Cluster(args) => cluster::run(args, out),
        Command::Agent(args) => agent::run(args, out),
        Command::Client(args) => client::run(args, out),
    }
}

#[cfg(test)]
mod tests;
