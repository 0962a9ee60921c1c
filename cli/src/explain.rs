//! `atoll explain`: how the agent changes a request. It needs neither an agent nor a host.
//!
//! Reading order: [`Args`], `request` (the request to explain), [`proxy_agent::exchange::explain`] (plans it with the
//! code of the agent), `output`, `fields` (how an object changes).

mod fields;
mod output;
mod request;

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

use request::ClientRequest;

/// Explain which request the agent sends to the host cluster for the request of a client.
///
/// Reads a proxy-agent's configuration, plans the request with the code of the agent, and prints the kind of the
/// request, the checks before it, the request to the host and its identity, and the response to the client. The command
/// sends nothing. It assumes that the host allows everything, and that the namespace of the request exists. If the
/// outcome depends on objects of the host, it says so.
///
/// With -f, it explains the creation of each object of a file, and lists each field that changes, with the reason.
///
/// Exits with 0 if the agent would send every request, and with 1 if it refuses one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Explain a list of nodes\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing GET /api/v1/nodes\n\n  \
    # Explain a request of the user jane in the group dev\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing --user jane --group dev \\\n      \
        GET '/api/v1/pods?fieldSelector=metadata.namespace=edge'\n\n  \
    # Explain the creation of the objects in a file\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing -f deployment.yaml")]
pub(crate) struct Args {
    /// The proxy-agent's configuration. The command does not read the certificates and the kubeconfig that it names.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The virtual cluster of the client.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The name of the user in the virtual cluster. The default is admin.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// A group of the user. Can be given several times. The default is system:masters without --user, and none with
    /// --user.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,

    /// A file with objects to create, in YAML or JSON. It can contain several documents and Lists. - is standard input.
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
    check_cluster(args, &config)?;
    let requests = match (&args.filename, &args.method, &args.url) {
        (Some(file), ..) => request::objects(file, &args.namespace)?,
        (None, Some(method), Some(url)) => vec![ClientRequest::new(method, url, &args.cluster)?],
        _ => bail!("METHOD and URL are required, or -f OBJECT"),
    };
    let user = Identity {
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
    for (index, request) in requests.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let explanation = runtime.block_on(explain(&config, &args.cluster, &user, request.to_http()?))?;
        all_sent &= matches!(explanation.outcome, Outcome::Sent(_));
        output::explained(request, &args.cluster, &user, &explanation, out)?;
    }
    Ok(if all_sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails if the configuration has no virtual cluster of this name.
fn check_cluster(args: &Args, config: &ProxyAgentConfiguration) -> anyhow::Result<()> {
    let cluster = &args.cluster;
    if config.virtual_clusters.iter().any(|entry| entry.name == *cluster) {
        return Ok(());
    }
    if config.physical_clusters.iter().any(|entry| entry.name == *cluster) {
        bail!("{cluster} is a physical cluster: the agent forwards its requests unchanged");
    }
    let names: Vec<_> = config.virtual_clusters.iter().map(|entry| entry.name.as_str()).collect();
    let file = args.config.display();
    bail!("{file} has no virtual cluster {cluster}; it has: {}", names.join(", "))
}

#[cfg(test)]
mod tests;
