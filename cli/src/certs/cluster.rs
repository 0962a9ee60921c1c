//! `atoll certs cluster`: the authority of one virtual cluster's clients.

use std::io::Write;
use std::path::PathBuf;

use ops::pki::Authority;
use protocol::ClusterName;

use super::directory::{Directory, write_pairs, yaml};
use crate::lifetime::Lifetime;

/// Make the client CA of a virtual cluster.
///
/// Writes DIR/clusters/CLUSTER/client-ca.{crt,key}. Whoever has a certificate of this authority is a user of this
/// cluster, and of no other. The proxy-server needs the certificate; the key is only for `atoll kubeconfig` and may be
/// kept elsewhere. A physical cluster needs none: its API server checks its own clients.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The name of the virtual cluster, as in the configurations.
    #[arg(value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The directory that `atoll certs init` made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// How long the authority is valid, for example 3650d or 87600h.
    #[arg(long, value_name = "TIME", default_value = "3650d")]
    lifetime: Lifetime,

    /// Replace what is there. All kubeconfigs of this cluster that hold certificates become worthless.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let cluster = &args.cluster;
    let path = Directory::new(&args.dir)?.client_ca(cluster.as_str());
    let authority = Authority::create(&format!("Atoll client CA of {cluster}"), args.lifetime.get())?;
    write_pairs(&[(path.clone(), authority.pem())], args.force, out)?;
    writeln!(
        out,
        "\nIn the proxy-server's configuration, under `clusters:`, with the agents that may serve it:\n\n\
         - {{name: {cluster}, agents: [AGENT], clientCA: {{certificate: {}, key: {}}}}}",
        yaml(&path.certificate),
        yaml(&path.key),
    )?;
    Ok(())
}
