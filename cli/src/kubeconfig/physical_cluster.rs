//! The kubeconfig of a physical cluster: an existing one, through the proxy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use protocol::Authority;
use protocol::registration::Mode;
use serde_json::{Map, Value};

use super::document::Document;
use super::{Args, access};

/// Keys whose value is a path, relative to the kubeconfig's directory (`clientcmd`, `RelativizePathWithNoBacksteps`).
const CLUSTER_PATHS: [&str; 1] = ["certificate-authority"];
const USER_PATHS: [&str; 3] = ["client-certificate", "client-key", "tokenFile"];

/// Takes the current context of the kubeconfig at `path`, adds the proxy and renders it. Other contexts stay behind:
/// their clusters are not behind this proxy, and their credentials are nobody's business here.
pub(super) fn kubeconfig(args: &Args, path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut document = current_context(&text, path).with_context(|| path.display().to_string())?;
    document.name = args.cluster.to_string();

    let config = access::server_config(args)?;
    let asked = api_server(&document.cluster)?;
    if let Some(config) = &config {
        let cluster = access::cluster(args, config)?;
        ensure!(
            cluster.mode == Mode::Physical,
            "{0} is a virtual cluster: its credentials are minted; leave --physical-from out",
            args.cluster
        );
        if let Some(known) = &cluster.api_server
            && *known != asked
        {
            bail!(
                "{} connects to {asked}, but the proxy-server knows cluster {} by {known}",
                path.display(),
                args.cluster
            );
        }
    }
    let proxy = access::proxy_url(args, config.as_ref())?;
    document.cluster.insert("proxy-url".to_owned(), proxy.into());
    document.to_yaml()
}

fn current_context(text: &str, path: &Path) -> anyhow::Result<Document> {
    let file: Value = serde_saphyr::from_str(text).context("not a kubeconfig")?;
    let current = file["current-context"].as_str().filter(|name| !name.is_empty()).context("no current-context")?;
    let context = named(&file, "contexts", "context", current)?;
    let reference =
        |key: &str| context.get(key).and_then(Value::as_str).with_context(|| format!("no {key} in context"));
    let mut cluster = named(&file, "clusters", "cluster", reference("cluster")?)?;
    let mut user = named(&file, "users", "user", reference("user")?)?;

    let base = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    make_absolute(&mut cluster, &CLUSTER_PATHS, &base);
    make_absolute(&mut user, &USER_PATHS, &base);
    // A command without a slash is looked up in PATH.
    if let Some(exec) = user.get_mut("exec").and_then(Value::as_object_mut)
        && exec.get("command").and_then(Value::as_str).is_some_and(|command| command.contains('/'))
    {
        make_absolute(exec, &["command"], &base);
    }
    let namespace = context.get("namespace").cloned();
    Ok(Document { name: current.to_owned(), cluster, user, namespace })
}

/// The object of that name in one of the lists.
fn named(file: &Value, list: &str, kind: &str, name: &str) -> anyhow::Result<Map<String, Value>> {
    let entries = file[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry["name"] == name);
    let object = entry.and_then(|entry| entry[kind].as_object());
    object.cloned().with_context(|| format!("no {name} in {list}"))
}

fn make_absolute(object: &mut Map<String, Value>, keys: &[&str], base: &Path) {
    for key in keys {
        if let Some(Value::String(path)) = object.get_mut(*key)
            && !path.is_empty()
        {
            let absolute: PathBuf = base.join(&*path);
            *path = absolute.to_string_lossy().into_owned();
        }
    }
}

/// What clients put into CONNECT: host and port of `server`.
fn api_server(cluster: &Map<String, Value>) -> anyhow::Result<Authority> {
    let server = cluster.get("server").and_then(Value::as_str).context("the cluster has no server")?;
    let rest = server.strip_prefix("https://").with_context(|| format!("server {server} is not https"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority
        .parse()
        .or_else(|_| format!("{authority}:443").parse())
        .with_context(|| format!("server {server} has no host"))
}
