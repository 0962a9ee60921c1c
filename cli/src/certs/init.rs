//! `atoll certs init`: the two authorities that every set-up has.

use std::io::Write;
use std::path::PathBuf;

use ops::pki::Authority;

use super::directory::{Directory, write_pairs, yaml};
use crate::lifetime::Lifetime;

/// Make the serving CA and the agent CA of a new set-up.
///
/// Writes DIR/serving-ca.{crt,key}, which signs what the proxy-server shows to clients and agents, and
/// DIR/agent-ca.{crt,key}, which signs the certificates of agents. The proxy-server needs the key of the first and only
/// the certificate of the second: keep agent-ca.key where `atoll certs agent` runs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory; it is made if it is not there.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// How long the authorities are valid, for example 3650d or 87600h.
    #[arg(long, value_name = "TIME", default_value = "3650d")]
    lifetime: Lifetime,

    /// Replace what is there. All certificates that the old authorities signed become worthless.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = Directory::new(&args.dir)?;
    let serving = Authority::create("Atoll serving CA", args.lifetime.get())?;
    let agents = Authority::create("Atoll agent CA", args.lifetime.get())?;
    let (serving_path, agents_path) = (dir.serving_ca(), dir.agent_ca());
    write_pairs(&[(serving_path.clone(), serving.pem()), (agents_path.clone(), agents.pem())], args.force, out)?;
    writeln!(
        out,
        "\nIn the proxy-server's configuration:\n\n\
         servingCA: {{certificate: {}, key: {}}}\n\
         agentCA: {{certificate: {}}}",
        yaml(&serving_path.certificate),
        yaml(&serving_path.key),
        yaml(&agents_path.certificate),
    )?;
    Ok(())
}
