//! The kubeconfig of a physical cluster: an existing one, with the proxy.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use protocol::Authority;
use protocol::registration::Mode;
use serde_json::{Map, Value};

use super::args::Args;
use super::{addresses, existing};

/// Reads the current context of the kubeconfig at `path`, adds the proxy and renders it. The result has no
/// other contexts, because their clusters are not behind this proxy.
pub(super) fn kubeconfig(args: &Args, path: &Path) -> anyhow::Result<String> {
    let mut document = existing::current_context(path)?;
    document.name = args.cluster.to_string();

    let config = addresses::server_config(args)?;
    let target = api_server(&document.cluster)?;
    let mut name = None;
    if let Some(config) = &config {
        let cluster = addresses::cluster(args, config)?;
        ensure!(
            cluster.mode == Mode::Physical,
            "{0} is a virtual cluster, for which this command issues credentials: do not set --physical-from",
            args.cluster
        );
        if let Some(configured) = &cluster.api_server
            && *configured != target
        {
            bail!(
                "{} connects to {target}, but `apiServer` of cluster {} in the proxy-server's configuration is {configured}",
                path.display(),
                args.cluster
            );
        }
        if config.clusters.iter().filter(|other| other.api_server.as_ref() == Some(&target)).count() > 1 {
            name = Some(format!("{}.{}", args.cluster, config.domain));
        }
    }
    if let Some(name) = name {
        connect_by_name(&mut document.cluster, &name, &target)?;
    }
    let proxy = addresses::proxy_url(args, config.as_ref())?;
    document.cluster.insert("proxy-url".to_owned(), proxy.into());
    Ok(document.to_yaml()?)
}

/// Several clusters have this API server, as sites with `https://127.0.0.1:6443` do. So the name of the cluster becomes the target of
/// CONNECT, and the API server's certificate is verified for the address as before.
fn connect_by_name(cluster: &mut Map<String, Value>, name: &str, target: &Authority) -> anyhow::Result<()> {
    let server =
        cluster.get("server").and_then(Value::as_str).context("the cluster in the kubeconfig has no server")?;
    let rest = server.strip_prefix("https://").unwrap_or(server);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    let server = format!("https://{name}:{}{path}", target.port());
    cluster.insert("server".to_owned(), server.into());
    cluster.entry("tls-server-name").or_insert_with(|| target.host().into());
    Ok(())
}

/// The target of CONNECT that clients send: host and port of `server`.
fn api_server(cluster: &Map<String, Value>) -> anyhow::Result<Authority> {
    let server =
        cluster.get("server").and_then(Value::as_str).context("the cluster in the kubeconfig has no server")?;
    let rest =
        server.strip_prefix("https://").with_context(|| format!("server {server:?} does not begin with https://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority
        .parse()
        .or_else(|_| format!("{authority}:443").parse())
        .with_context(|| format!("server {server:?} has no host"))
}
