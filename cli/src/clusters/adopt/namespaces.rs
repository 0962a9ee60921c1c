//! Takes over namespaces of the host.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use host_client::api::{Api, PatchKind};
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::{Value, json};
use virtual_cluster::namespaces::PATH;

use super::args::Args;
use super::host_names::is_of_host;

/// What happens to a namespace.
#[derive(Debug, PartialEq, Eq)]
enum Takeover {
    /// It gets the labels.
    Label(VirtualNamespace),
    /// It belongs to the virtual cluster already.
    Present,
}

pub(super) async fn run(api: &Api, args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let cluster = &args.cluster;
    let mut found = Vec::new();
    // Nothing changes if one of them cannot be taken over.
    for host in &args.namespaces {
        let namespace = api.get(&format!("{PATH}/{host}")).await.with_context(|| format!("namespace {host}"))?;
        let takeover = examine(cluster, host, &namespace).with_context(|| format!("namespace {host}"))?;
        found.push((host, namespace, takeover));
    }
    let news = found.iter().filter(|(_, _, takeover)| *takeover != Takeover::Present).count();
    if news > 0 && !args.yes && !args.dry_run {
        bail!("clients of {cluster} will have access to everything in {news} namespaces; add --yes to continue");
    }
    for (host, namespace, takeover) in &found {
        let Takeover::Label(name) = takeover else {
            writeln!(out, "namespace {host} belongs to {cluster} already")?;
            continue;
        };
        if args.dry_run {
            writeln!(out, "namespace {host} would become {name} of {cluster}")?;
            continue;
        }
        let labels = json!({CLUSTER_LABEL: cluster.as_str(), NAMESPACE_LABEL: name.as_str()});
        // Not one of the same name that was created since.
        let uid = &namespace["metadata"]["uid"];
        let patch = json!({"metadata": {"labels": labels, "uid": uid}});
        let path = format!("{PATH}/{host}");
        api.patch(&path, PatchKind::Merge, &patch).await.with_context(|| format!("namespace {host}"))?;
        writeln!(out, "namespace {host} is now {name} of {cluster}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether, and under which name, the virtual cluster can have the namespace.
fn examine(cluster: &ClusterName, host: &HostNamespace, namespace: &Value) -> anyhow::Result<Takeover> {
    let metadata = &namespace["metadata"];
    ensure!(metadata["deletionTimestamp"].is_null(), "it is being deleted");
    ensure!(metadata["labels"][ROOT_LABEL].is_null() && !host.is_root(), "it is a root namespace");
    let name = host.as_str().strip_suffix(cluster.as_str()).and_then(|rest| rest.strip_suffix('-'));
    let name = name.and_then(|name| VirtualNamespace::new(name).ok());
    let Some(name) = name.filter(|name| HostNamespace::derive(name, cluster) == *host) else {
        bail!(
            "its name does not end with `-{cluster}`, and Kubernetes cannot rename a namespace; create a namespace through \
             the endpoint of {cluster}, and copy the objects"
        );
    };
    ensure!(!is_of_host(host, &name), "it belongs to the host");
    match metadata["labels"][CLUSTER_LABEL].as_str() {
        None => Ok(Takeover::Label(name)),
        Some(owner) if owner == cluster.as_str() && metadata["labels"][NAMESPACE_LABEL] == name.as_str() => {
            Ok(Takeover::Present)
        }
        Some(owner) => bail!("it has the labels of virtual cluster {owner}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_labels_decide() {
        let examined = |name: &str, labels: Value| {
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            examine(&"ke-beijing".parse().unwrap(), &name.parse().unwrap(), &namespace)
                .map_err(|error| error.to_string())
        };
        let edge: VirtualNamespace = "edge".parse().unwrap();
        assert_eq!(examined("edge-ke-beijing", json!({"a": "b"})), Ok(Takeover::Label(edge)));
        let own = json!({CLUSTER_LABEL: "ke-beijing", NAMESPACE_LABEL: "edge"});
        assert_eq!(examined("edge-ke-beijing", own), Ok(Takeover::Present));
        for (name, labels, expect) in [
            ("shop", json!({}), "does not end with `-ke-beijing`"),
            ("ke-beijing", json!({}), "does not end with"),
            (
                "edge-ke-beijing",
                json!({CLUSTER_LABEL: "beijing", NAMESPACE_LABEL: "edge-ke"}),
                "labels of virtual cluster",
            ),
            ("atoll-root-ke-beijing", json!({ROOT_LABEL: "ke-beijing"}), "is a root namespace"),
        ] {
            let error = examined(name, labels).unwrap_err();
            assert!(error.contains(expect), "{expect:?} in {error:?}");
        }
    }

    #[test]
    fn namespaces_of_the_host_are_not_taken_over() {
        let namespace = json!({"metadata": {"name": "kube-system"}});
        let error = examine(&"system".parse().unwrap(), &"kube-system".parse().unwrap(), &namespace).unwrap_err();
        assert!(error.to_string().contains("belongs to the host"), "{error}");
    }
}
