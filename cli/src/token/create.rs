//! `atoll token create`.

use std::fs;
use std::io::Write;
use std::time::SystemTime;

use anyhow::Context as _;
use ops::config::FilePath;
use ops::date::Moment;
use ops::pki::Authority;
use protocol::AgentId;
use protocol::enrolment::JoinToken;
use proxy_server::ProxyServerConfiguration;
use proxy_server::config::KeyPair;

use super::store_args::StoreArgs;
use crate::lifetime::Lifetime;

/// Create a join token for an agent.
///
/// Prints the command that joins the site. Whoever has the token can become this agent, so treat it as a password. The token
/// also contains a digest of the serving CA, by which the agent recognises the proxy-server. The configuration (`agents` of
/// a cluster, and `grants`), and not the token, determines which clusters the agent may serve.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Let one machine join as the agent site-a within an hour\n  \
    atoll token create site-a --server-config proxy-server.yaml\n\n  \
    # Let three replicas join within a day\n  \
    atoll token create site-a --server-config proxy-server.yaml --uses 3 --lifetime 24h")]
pub(super) struct Args {
    /// The agent's ID, as in `agents` of the proxy-server's configuration.
    #[arg(value_name = "ID")]
    id: AgentId,

    #[command(flatten)]
    store: StoreArgs,

    /// How long the token is valid, for example 24h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    lifetime: Lifetime,

    /// How many times the token can be used: the number of replicas of the agent that join with it.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    uses: u32,

    /// Print only the token.
    #[arg(short, long)]
    quiet: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (config, tokens) = args.store.open()?;
    let ca_digest = ca_digest(&config)?;
    let (now, lifetime) = (SystemTime::now(), args.lifetime.get());
    let token = JoinToken { credential: tokens.create(&args.id, lifetime, args.uses, now)?, ca_digest };
    if args.quiet {
        writeln!(out, "{}", token.expose())?;
        return Ok(());
    }
    let names = config.clusters.iter().filter(|cluster| cluster.agents.contains(&args.id)).map(|it| it.name.as_str());
    let names: Vec<&str> = names.collect();
    let (expires, uses) = (Moment::from(now + lifetime), args.uses);
    let times = if uses == 1 { "once".to_owned() } else { format!("{uses} times") };
    writeln!(out, "# The token can be used {times}, until {expires}. Run this command at the site:")?;
    // In a variable, because every user of a machine can read the arguments of its processes (proc(5)).
    let (server, token) = (server(&config), token.expose());
    writeln!(out, "ATOLL_JOIN_TOKEN={token} proxy-agent --config proxy-agent.yaml --server {server}")?;
    let is_granted = config.grants.as_ref().is_some_and(|it| it.agents.iter().any(|grant| grant.id == args.id));
    if names.is_empty() && !is_granted {
        writeln!(
            out,
            "# No cluster lists {} in `agents`, and it has no grant, so the proxy-server will refuse its clusters.",
            args.id
        )?;
    }
    Ok(())
}

/// The digest of the CA that signs the certificate of the proxy-server. Its file may also contain former and later ones.
fn ca_digest(config: &ProxyServerConfiguration) -> anyhow::Result<[u8; 32]> {
    let KeyPair { certificate, key } = &config.serving_ca;
    let read = |path: &FilePath| fs::read(path.as_path()).with_context(|| format!("cannot read {}", path.display()));
    let authority = Authority::from_pem(&read(certificate)?, &read(key)?).context("servingCA")?;
    Ok(authority.key_digest())
}

/// An address that agents can probably reach.
fn server(config: &ProxyServerConfiguration) -> String {
    let listener = config.listeners.agents.to_string();
    let port = listener.rsplit_once(':').map_or("8091", |(_, port)| port);
    let is_wide = listener.starts_with("0.0.0.0:") || listener.starts_with("[::]:");
    match config.host_names.first() {
        Some(name) if is_wide => format!("{}:{port}", **name),
        None if is_wide => format!("HOST:{port}"),
        _ => listener,
    }
}
