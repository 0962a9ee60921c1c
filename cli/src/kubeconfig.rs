//! `atoll kubeconfig`: what a client needs to reach a cluster.
//!
//! [`access`] works out where the endpoint is, [`virtual_cluster`] mints credentials, [`physical_cluster`] takes those of
//! an [`existing`] kubeconfig; [`document`] is the file itself. [`karmada`] makes something else of the same knowledge.

mod access;
pub(crate) mod document;
pub(crate) mod existing;
mod karmada;
mod physical_cluster;
mod virtual_cluster;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use ops::files::{Existing, Secrecy, write};
use protocol::ClusterName;

use crate::lifetime::Lifetime;

/// Make a kubeconfig for a cluster.
///
/// For a virtual cluster a client certificate is minted under the cluster's client CA, whose key the proxy-server's
/// configuration must name. The default user `admin` is in the group `system:masters`: an administrator of the virtual
/// cluster, and nobody on the host cluster. With --token, a token of the host cluster is used instead of a certificate.
///
/// A physical cluster is reached end to end: its API server checks its own clients, so nothing can be minted here. Give
/// a kubeconfig that works beside the cluster with --physical-from; its current context is taken over, with a proxy-url.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml -o ke-beijing.kubeconfig\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --user jane --group dev --lifetime 12h\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --karmada -o member.yaml\n  \
    atoll kubeconfig branch-7 --physical-from branch-7-admin.conf --proxy-url http://proxy.example.com:8090")]
pub(crate) struct Args {
    /// The name of the cluster; the context, the cluster and the user in the kubeconfig get the same name.
    #[arg(value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The proxy-server's configuration. It says where the endpoints are and which files sign for them.
    #[arg(long, value_name = "FILE", required_unless_present = "physical_from")]
    server_config: Option<PathBuf>,

    /// The user's name: the common name of the certificate. The default is admin.
    #[arg(long, value_name = "USER", conflicts_with_all = ["token", "physical_from"])]
    user: Option<String>,

    /// A group of the user: an organisation of the certificate. May be given several times. The default is
    /// system:masters without --user, and no group with it.
    #[arg(long = "group", value_name = "GROUP", conflicts_with_all = ["token", "physical_from"])]
    groups: Vec<String>,

    /// How long the certificate is valid, for example 365d or 12h; never longer than the client CA.
    #[arg(long, value_name = "TIME", default_value = "365d", conflicts_with_all = ["token", "physical_from"])]
    lifetime: Lifetime,

    /// A bearer token of the host cluster, for example of a service account, instead of a certificate.
    #[arg(long, value_name = "TOKEN", conflicts_with = "physical_from")]
    token: Option<String>,

    /// Without a proxy: https://127.0.0.1:PORT/clusters/CLUSTER, or --server.
    #[arg(long, conflicts_with_all = ["proxy_url", "physical_from"])]
    direct: bool,

    /// The HTTP proxy, if clients do not reach it where the configuration listens.
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,

    /// The URL of the endpoint, if clients use another one. Without --direct it is CLUSTER.DOMAIN on port 443.
    #[arg(long, value_name = "URL", conflicts_with = "physical_from")]
    server: Option<String>,

    /// A kubeconfig of a physical cluster, to which the proxy is added. With --server-config it is checked that the
    /// proxy-server knows the API server by the address in it.
    #[arg(long, value_name = "FILE")]
    physical_from: Option<PathBuf>,

    /// Print what makes a virtual cluster a member of Karmada in push mode instead, to be applied there: a Cluster and
    /// two Secrets, with what `karmada` of the configuration says, if it is there. The cluster is asked for the tokens in
    /// them, and prepared as `karmadactl join` does it, through `listeners.endpoint` or --direct --server.
    #[arg(long, conflicts_with_all = ["user", "groups", "token", "lifetime", "physical_from"])]
    karmada: bool,

    /// Where to write it, readable by its owner only; standard output if not given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the output file.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Makes the kubeconfig and writes it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let text = match &args.physical_from {
        Some(path) => physical_cluster::kubeconfig(args, path)?,
        None if args.karmada => karmada::manifests(args)?,
        None => virtual_cluster::kubeconfig(args)?,
    };
    let Some(path) = &args.output else {
        out.write_all(text.as_bytes())?;
        return Ok(());
    };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    write(path, text.as_bytes(), Secrecy::Secret, existing).context("--force replaces a file")?;
    if args.karmada {
        writeln!(out, "wrote {}; in Karmada: kubectl apply --server-side -f {0}", path.display())?;
    } else {
        writeln!(out, "wrote {}; try: kubectl --kubeconfig {0} version", path.display())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
