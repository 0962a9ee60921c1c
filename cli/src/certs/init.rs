//! `atoll certs init`: the two CAs that every installation has.

use std::io::Write;
use std::path::PathBuf;

use ops::files::{Existing, Secrecy, write};
use ops::pki::Authority;

use super::directory::{Directory, write_pairs, yaml};
use crate::lifetime::Lifetime;
use crate::revocation_list;

/// Create the serving CA and the agent CA of a new installation.
///
/// Writes DIR/serving-ca.{crt,key}, which signs the proxy-server's certificates for clients and agents, and
/// DIR/agent-ca.{crt,key}, which signs the certificates of agents. Also writes DIR/revocations.yaml, the empty list of
/// revoked certificates (`atoll revoke`). The proxy-server needs the key of the serving CA,
/// but only the certificate of the agent CA: keep agent-ca.key where you run `atoll certs agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Create both CAs\n  \
    atoll certs init /etc/atoll\n\n  \
    # Create CAs that are valid for five years\n  \
    atoll certs init /etc/atoll --lifetime 1825d")]
pub(super) struct Args {
    /// The directory for the files. The command creates it if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// How long the CAs are valid, for example 3650d or 87600h.
    #[arg(long, value_name = "TIME", default_value = "3650d")]
    lifetime: Lifetime,

    /// Replace existing files. All certificates that the previous CAs signed become invalid.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = Directory::new(&args.dir)?;
    let serving = Authority::create("Atoll serving CA", args.lifetime.get())?;
    let agents = Authority::create("Atoll agent CA", args.lifetime.get())?;
    let (serving_path, agents_path) = (dir.serving_ca(), dir.agent_ca());
    write_pairs(&[(serving_path.clone(), serving.pem()), (agents_path.clone(), agents.pem())], args.force, out)?;
    let revocations = dir.revocations();
    // A new CA does not make a revoked name trustworthy, so --force keeps the list.
    if !revocations.exists() {
        write(&revocations, revocation_list::empty().as_bytes(), Secrecy::Public, Existing::Refuse)?;
        writeln!(out, "wrote {}", revocations.display())?;
    }
    writeln!(
        out,
        "\nIn the proxy-server's configuration:\n\n\
         servingCA: {{certificate: {}, key: {}}}\n\
         agentCA: {{certificate: {}}}\n\
         revocations: {}",
        yaml(&serving_path.certificate),
        yaml(&serving_path.key),
        yaml(&agents_path.certificate),
        yaml(&revocations),
    )?;
    Ok(())
}
