//! `atoll certs agent`: the certificate of one agent.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use protocol::AgentId;

use super::directory::{Directory, write_pairs};
use crate::lifetime::Lifetime;

/// Issue the certificate of an agent.
///
/// Writes DIR/agents/ID.{crt,key}, signed by DIR/agent-ca. Which clusters the agent may serve is written in the
/// proxy-server's configuration, not in the certificate. Replicas of an agent share one certificate.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent's id, as in `agents:` of the proxy-server's configuration; it becomes the common name.
    #[arg(value_name = "ID")]
    id: AgentId,

    /// The directory that `atoll certs init` made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// How long the certificate is valid, for example 365d or 8760h; never longer than the agent CA.
    #[arg(long, value_name = "TIME", default_value = "365d")]
    lifetime: Lifetime,

    /// Replace what is there, as a renewal does.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let id = &args.id;
    let dir = Directory::new(&args.dir)?;
    let authority = dir.agent_ca().read_authority()?;
    let no_groups: [&str; 0] = [];
    let pair = authority.issue_client(id.as_str(), &no_groups, args.lifetime.get()).context("agent CA")?;
    write_pairs(&[(dir.agent(id.as_str()), &pair)], args.force, out)?;
    writeln!(
        out,
        "\nCarry these two and {} to the agent, in the same folders. Its configuration, beside serving-ca.crt, says:\n\n\
         identity: {{certificate: agents/{id}.crt, key: agents/{id}.key, serverCA: serving-ca.crt}}",
        dir.serving_ca().certificate.display(),
    )?;
    Ok(())
}
