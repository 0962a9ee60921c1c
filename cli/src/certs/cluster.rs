//! `atoll certs cluster`: the client CA of one virtual cluster.

use std::io::Write;
use std::path::PathBuf;

use anyhow::ensure;
use ops::pki::Authority;
use protocol::ClusterName;

use super::directory::{Directory, write_pairs, yaml};
use crate::lifetime::Lifetime;

/// Create the client CA of a virtual cluster.
///
/// Writes DIR/clusters/CLUSTER/client-ca.{crt,key}. A certificate that this CA signed is valid for this cluster only.
/// The proxy-server needs the certificate of the CA. Only `atoll kubeconfig` needs the key, so you can keep it
/// elsewhere. A physical cluster needs a client CA only for `destinations`, because its API server authenticates its own
/// clients.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Create the client CA of ke-beijing\n  \
    atoll certs cluster ke-beijing --dir /etc/atoll")]
pub(super) struct Args {
    /// The name of the virtual cluster, as in the configurations.
    #[arg(value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The directory that `atoll certs init` created.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// How long the CA is valid, for example 3650d or 87600h.
    #[arg(long, value_name = "TIME", default_value = "3650d")]
    lifetime: Lifetime,

    /// Replace existing files. All kubeconfigs of this cluster with certificates become invalid.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let cluster = &args.cluster;
    let dir = Directory::new(&args.dir)?;
    // A wrong directory must not get a CA that the operator then looks for elsewhere.
    let agent_ca = dir.agent_ca().certificate;
    ensure!(agent_ca.exists(), "{} does not exist; `atoll certs init` creates it", agent_ca.display());
    let path = dir.client_ca(cluster.as_str());
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
