//! `atoll explain`: what the agent makes of a request, without an agent and without a host.
//!
//! Reading order: [`Args`], `request` (what is to be explained), [`proxy_agent::exchange::explain`] (which lets the
//! agent's own code plan it), `words` (what is printed), `fields` (how an object changes).

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

/// Explain what is sent to the host cluster instead of a request, and why.
///
/// Takes a proxy-agent's configuration, plans the request with the code of the agent, and prints what it is, what the
/// host is asked first, what is sent and as whom, and what comes back. Nothing is sent anywhere: every question to the
/// host is taken to be answered with yes, and the namespace of the request to be there. Where the outcome depends on what
/// the host has, it says so.
///
/// With -f, each object of a file is created, and every field that is sent otherwise is listed with its reason.
///
/// Ends with 0 if every request would be sent, with 1 if one is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing GET /api/v1/nodes\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing --user jane --group dev \\\n      \
        GET '/api/v1/pods?fieldSelector=metadata.namespace=edge'\n  \
    atoll explain --config proxy-agent.yaml --cluster ke-beijing -f deployment.yaml")]
pub(crate) struct Args {
    /// The proxy-agent's configuration. Certificates and the kubeconfig in it are not read.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The virtual cluster that the request is sent to.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,

    /// The user, in the names of the virtual cluster. The default is admin.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// A group of the user. May be given several times. The default is system:masters without --user, none with it.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,

    /// Objects to create, in YAML or JSON, several documents and Lists included; - is standard input.
    #[arg(short, long, value_name = "OBJECT", conflicts_with_all = ["method", "url"])]
    filename: Option<PathBuf>,

    /// The namespace of objects that name none.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", requires = "filename")]
    namespace: String,

    /// The method of the request: GET, POST, PUT, PATCH or DELETE.
    #[arg(value_name = "METHOD", required_unless_present = "filename", requires = "url")]
    method: Option<Method>,

    /// Path and query, as `kubectl -v 6` shows them; a whole URL will do.
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
        _ => bail!("a METHOD with its URL is needed, or -f OBJECT"),
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

/// A cluster that is not virtual, or none at all.
fn known(args: &Args, config: &ProxyAgentConfiguration) -> anyhow::Result<()> {
    let cluster = &args.cluster;
    if config.virtual_clusters.iter().any(|known| known.name == *cluster) {
        return Ok(());
    }
    if config.physical_clusters.iter().any(|known| known.name == *cluster) {
        bail!("{cluster} is a physical cluster: its requests are carried byte for byte, and nothing is changed");
    }
    let names: Vec<_> = config.virtual_clusters.iter().map(|known| known.name.as_str()).collect();
    let file = args.config.display();
    bail!("{file} has no virtual cluster {cluster}; it has: {}", names.join(", "))
}

#[cfg(test)]
mod tests;
