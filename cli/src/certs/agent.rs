//! `atoll certs agent`: the certificate of one agent.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use protocol::AgentId;

use super::directory::{Directory, write_pairs};
use crate::lifetime::Lifetime;
use crate::revocation_list;

/// Issue the certificate of an agent.
///
/// Writes DIR/agents/ID.{crt,key}, signed by DIR/agent-ca. The proxy-server's configuration, not the certificate,
/// determines which clusters the agent may serve. Replicas of an agent share one certificate.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Issue the certificate of the agent site-a\n  \
    atoll certs agent site-a --dir /etc/atoll\n\n  \
    # Renew it\n  \
    atoll certs agent site-a --dir /etc/atoll --force")]
pub(super) struct Args {
    /// The agent's ID, as in `agents:` of the proxy-server's configuration. It becomes the common name.
    #[arg(value_name = "ID")]
    id: AgentId,

    /// The directory that `atoll certs init` created. If it contains revocations.yaml, certificates of the agent that this
    /// file revokes stay revoked, and the new one is accepted at once.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// How long the certificate is valid, for example 365d or 8760h. It cannot be valid for longer than the agent CA.
    #[arg(long, value_name = "TIME", default_value = "365d")]
    lifetime: Lifetime,

    /// Replace existing files, for example to renew the certificate.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let id = &args.id;
    let dir = Directory::new(&args.dir)?;
    let authority = dir.agent_ca().read_authority()?;
    let no_groups: [&str; 0] = [];
    let not_before =
        revocation_list::not_before(&dir.revocations(), |revocation| revocation.agent.as_ref() == Some(id))?;
    let pair =
        authority.issue_client_after(id.as_str(), &no_groups, args.lifetime.get(), not_before).context("agent CA")?;
    write_pairs(&[(dir.agent(id.as_str()), &pair)], args.force, out)?;
    writeln!(
        out,
        "\nCopy these two files and {} to the machine of the agent, with the same directories. In the proxy-agent's \
         configuration, which must be in the directory of serving-ca.crt:\n\n\
         identity: {{certificate: agents/{id}.crt, key: agents/{id}.key, serverCA: serving-ca.crt}}",
        dir.serving_ca().certificate.display(),
    )?;
    Ok(())
}
