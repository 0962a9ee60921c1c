//! `atoll revoke user`.

use std::io::Write;

use anyhow::ensure;
use ops::date::Moment;
use protocol::ClusterName;
use proxy_server::config::Revocation;

use super::list_args::ListArgs;

/// Revoke all certificates and OIDC tokens of a user of a virtual cluster that were issued until now.
///
/// A user of an OIDC issuer has the prefix of the configuration. Block the user at the issuer first: otherwise, the user gets new
/// tokens, which are valid.
///
/// A kubeconfig of `atoll kubeconfig` without --token contains such a certificate, and so do the files of `atoll certs client`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # The kubeconfig of jane was stolen\n  \
    atoll revoke user jane --cluster ke-beijing --server-config proxy-server.yaml --reason 'laptop stolen'\n\n  \
    # Issue a new one\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --user jane -o jane.kubeconfig")]
pub(super) struct Args {
    /// The name of the user: the common name of the certificates, or the name from a token with its prefix.
    #[arg(value_name = "USER")]
    user: String,

    /// The cluster of the user.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,

    #[command(flatten)]
    list: ListArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    ensure!(!args.user.is_empty(), "the name of the user is empty");
    let now = Moment::now();
    let revocation = Revocation {
        cluster: Some(args.cluster.clone()),
        user: Some(args.user.clone()),
        issued_before: Some(now),
        reason: args.list.reason.clone(),
        ..Revocation::default()
    };
    let meaning = format!("certificates and OIDC tokens of user {} of {} from before {now}", args.user, args.cluster);
    args.list.open()?.add(revocation, &meaning, out)
}
