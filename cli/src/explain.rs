//! `atoll explain`: how the agent changes a request, without an agent and without a host.
//!
//! Reading order: [`Args`], `request` (the request to explain), [`proxy_agent::exchange::explain`] (which plans it with the
//! agent's own code), `words` (what is printed), `fields` (how an object changes).

mod fields;
mod request;
mod words;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http::Method;
use ops::config::load;
use protocol::ClusterName;
use protocol::identity::Identity;
use proxy_agent::ProxyAgentConfiguration;
use proxy_agent::exchange::explain::{Outcome, explain};

use request::Asked;

/// Explain which request the agent sends to the host cluster instead of a client's, and why.
///
/// Reads a proxy-agent's configuration, plans the request with the code of the agent, and prints what the request is, what
/// the agent checks first, which request it sends with which identity, and what the client gets. Nothing is sent: the
/// command assumes that the host allows everything and that the namespace of the request exists. If the outcome depends on
/// objects of the host, it says so.
///
/// With -f, it explains the creation of each object of a file, and lists every field that changes with its reason.
///
/// Exits with 0 if every request would be sent, and with 1 if one is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing GET /api/v1/nodes\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing --user jane --group dev \\\n      \
        GET '/api/v1/pods?fieldSelector=metadata.namespace=edge'\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing -f deployment.yaml")]
pub(crate) struct Args {
    /// The proxy-agent's configuration. The certificates and the kubeconfig that it names are not read.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The virtual cluster to which the client sends the request.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The name of the user in the virtual cluster. The default is admin.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// A group of the user. Can be given several times. The default is system:masters without --user, and none with --user.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,

    /// Objects to create, in YAML or JSON. Can contain several documents and Lists. - is standard input.
    #[arg(short, long, value_name = "OBJECT", conflicts_with_all = ["method", "url"])]
    filename: Option<PathBuf>,

    /// The namespace of objects without a namespace.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", requires = "filename")]
    namespace: String,

    /// The method of the request: GET, POST, PUT, PATCH or DELETE.
    #[arg(value_name = "METHOD", required_unless_present = "filename", requires = "url")]
    method: Option<Method>,

    /// The path and query, as `kubectl -v 6` shows them, or a whole URL.
    #[arg(value_name = "URL")]
    url: Option<String>,
}

/// Explains each request.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let config: ProxyAgentConfiguration = load(&args.config)?;
    known(args, &config)?;
    let asked = match (&args.filename, &args.method, &args.url) {
        (Some(file), ..) => request::objects(file, &args.namespace)?,
        (None, Some(method), Some(url)) => vec![Asked::plain(method, url, &args.cluster)?],
        _ => bail!("METHOD and URL are required, or -f OBJECT"),
    };
    let who = Identity {
        user: args.user.clone().unwrap_or_else(|| "admin".to_owned()),
        groups: match &args.groups[..] {
            [] if args.user.is_none() => vec!["system:masters".to_owned()],
            groups => groups.to_vec(),
        },
        uid: None,
        credential: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut all_sent = true;
    for (index, asked) in asked.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let explanation = runtime.block_on(explain(&config, &args.cluster, &who, asked.request()?))?;
        all_sent &= matches!(explanation.outcome, Outcome::Sent(_));
        words::explained(asked, &args.cluster, &who, &explanation, out)?;
    }
    Ok(if all_sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails if the cluster is not virtual, or not in the configuration.
fn known(args: &Args, config: &ProxyAgentConfiguration) -> anyhow::Result<()> {
    let cluster = &args.cluster;
    if config.virtual_clusters.iter().any(|known| known.name == *cluster) {
        return Ok(());
    }
    if config.physical_clusters.iter().any(|known| known.name == *cluster) {
        bail!("{cluster} is a physical cluster: the agent forwards its requests byte for byte, without changes");
    }
    let names: Vec<_> = config.virtual_clusters.iter().map(|known| known.name.as_str()).collect();
    let file = args.config.display();
    bail!("{file} has no virtual cluster {cluster}; it has: {}", names.join(", "))
}

#[cfg(test)]
mod tests;
