//! `atoll certs client`: the certificate of a user who reaches destinations at a site.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use protocol::ClusterName;
use protocol::destination::GROUP;
use proxy_server::config::Revocation;

use super::directory::{Directory, write_pairs};
use crate::invocation::Invocation;
use crate::lifetime::Lifetime;
use crate::revocation_list;

/// Issue the certificate of a user who reaches destinations at the site of a cluster.
///
/// Writes DIR/clusters/CLUSTER/users/USER.{crt,key}, signed by DIR/clusters/CLUSTER/client-ca. The user is in the group
/// atoll:destinations, which has no rights in a virtual cluster. `atoll forward` uses the files. For users of a virtual
/// cluster, use `atoll kubeconfig` instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Let jane reach the destinations of branch-7 for 30 days\n  \
    atoll certs client jane --cluster branch-7 --dir /etc/atoll --lifetime 30d")]
pub(super) struct Args {
    /// The name of the user. It becomes the common name, which the log of the proxy-server shows.
    #[arg(value_name = "USER")]
    user: String,

    /// The cluster at whose site the destinations are.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The directory that `atoll certs init` created.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// How long the certificate is valid, for example 30d or 12h.
    #[arg(long, value_name = "TIME", default_value = "30d")]
    lifetime: Lifetime,

    /// Replace existing files, for example to renew the certificate.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (user, cluster) = (&args.user, &args.cluster);
    let is_file_name = !user.is_empty() && !user.starts_with('.') && !user.contains(['/', '\0']);
    ensure!(is_file_name, "the user name {user:?} cannot be the name of a file");
    let dir = Directory::new(&args.dir)?;
    let ca = dir.client_ca(cluster.as_str());
    let missing = || format!("run `atoll certs cluster {cluster}` first");
    let authority = ca.read_authority().with_context(missing)?;
    let is_of_user = |revocation: &Revocation| {
        revocation.cluster.as_ref() == Some(cluster) && revocation.user.as_ref() == Some(user)
    };
    let not_before = revocation_list::not_before(&dir.revocations(), is_of_user)?;
    let pair = authority.issue_client_after(user, &[GROUP], args.lifetime.get(), not_before).context("client CA")?;
    let files = dir.user(cluster.as_str(), user);
    write_pairs(&[(files.clone(), &pair)], args.force, out)?;
    writeln!(
        out,
        "\nGive both files and {} to the user, who reaches a destination with:\n\n\
         {} forward HOST:PORT --cluster {cluster} --proxy https://PROXY-SERVER:8090 --ca {} --certificate {} --key {}",
        dir.serving_ca().certificate.display(),
        Invocation::current().typed(),
        dir.serving_ca().certificate.display(),
        files.certificate.display(),
        files.key.display(),
    )?;
    Ok(())
}
