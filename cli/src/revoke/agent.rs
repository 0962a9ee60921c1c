//! `atoll revoke agent`.

use std::io::Write;

use ops::date::Moment;
use protocol::AgentId;
use proxy_server::config::Revocation;

use super::list_args::ListArgs;

/// Revoke all certificates of an agent that were issued until now.
///
/// Its tunnels end, and it cannot register again until it gets a new certificate. Its join tokens are not valid any more. The clusters of the agent are
/// unavailable for that time. The certificate of the proxy-servers themselves (`peers`) can be revoked in the same way.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # The machine of the agent site-a was stolen\n  \
    atoll revoke agent site-a --server-config proxy-server.yaml --reason stolen\n\n  \
    # Issue a certificate for its new machine\n  \
    atoll certs agent site-a --dir /etc/atoll --force")]
pub(super) struct Args {
    /// The agent's ID.
    #[arg(value_name = "ID")]
    id: AgentId,

    #[command(flatten)]
    list: ListArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let now = Moment::now();
    let revocation = Revocation {
        agent: Some(args.id.clone()),
        issued_before: Some(now),
        reason: args.list.reason.clone(),
        ..Revocation::default()
    };
    args.list.open()?.add(revocation, &format!("certificates of agent {} from before {now}", args.id), out)
}
