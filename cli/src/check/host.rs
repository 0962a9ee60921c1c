//! What the host cluster says: whether it can be asked, and whether it lets the agent do its work.
//!
//! Asked with the agent's own credential by the agent's own client; nothing is written.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube_wire::selector::LabelSelector;
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::Reloader;
use proxy_agent::ProxyAgentConfiguration;
use proxy_agent::config;
use proxy_agent::host::Host;
use proxy_agent::host::api::{Api, Selection, Shape};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::certificate::chain;
use super::report::Report;

/// For all questions together.
const PATIENCE: Duration = Duration::from_secs(120);
/// The oldest minor version of Kubernetes 1 that works.
const OLDEST: u32 = 26;
/// The first that has the policies by which the host keeps pods on their slice.
const POLICIES: u32 = 30;
/// The rules that the agent needs, as they are to be applied.
const RBAC: &str = include_str!("../../../configs/kubernetes/agent-rbac.yaml");
/// What the agent's rights to custom resources are aggregated in.
const CUSTOM_RESOURCES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll-proxy-agent-custom-resources";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const BINDINGS: [(&str, &str); 2] = [
    ("ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
    ("RoleBinding", "/apis/rbac.authorization.k8s.io/v1/rolebindings"),
];
/// Groups of the host that users of virtual clusters are in, whatever the agent does.
const EVERYBODY: [(&str, &str); 2] = [
    ("system:authenticated", "every user and service account of every virtual cluster"),
    ("system:serviceaccounts", "every service account of every virtual cluster"),
];

/// Asks the host everything. Where an answer is missing, so is what follows from it.
pub(super) fn ask(config: &ProxyAgentConfiguration, report: &mut Report) {
    let Some(host) = &config.host else {
        return report.mistakes.general("--host: there is no `host` in the configuration to be asked");
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.mistakes.general(format_args!("--host: no runtime: {error}")),
    };
    runtime.block_on(async {
        // Why it cannot be opened is said already.
        let Ok(opened) = Host::open(host, &Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new()) else { return };
        let api = Api::new(opened);
        if timeout(PATIENCE, questions(&api, config, host, report)).await.is_err() {
            report.mistake(host, format_args!("host: not all questions were answered within {PATIENCE:?}"));
        }
    });
}

async fn questions(api: &Api, config: &ProxyAgentConfiguration, host: &Located<config::Host>, report: &mut Report) {
    match version(api).await {
        Err(error) => return report.mistake(host, format_args!("host: it cannot be asked: {error:#}")),
        Ok((minor, text)) if minor < OLDEST => {
            report.mistake(host, format_args!("host: Kubernetes {text} is too old; 1.{OLDEST} or newer is needed"));
        }
        Ok((minor, text)) if minor < POLICIES && !host.unsafe_direct_access && !config.virtual_clusters.is_empty() => {
            report.mistake(
                host,
                format_args!(
                    "host: Kubernetes {text} has no ValidatingAdmissionPolicy (1.{POLICIES} has), so no virtual cluster is \
                     served unless `unsafeDirectAccess: true` below `host` accepts that"
                ),
            );
        }
        Ok(_) => {}
    }
    match missing(api).await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => {
            let (count, missing) = (missing.len(), missing.join(", "));
            report.mistake(
                host,
                format_args!(
                    "host: the agent lacks {count} rights of configs/kubernetes/agent-rbac.yaml, which must be applied: \
                     {missing}"
                ),
            );
        }
        Err(error) => report.mistake(host, format_args!("host: it does not say what the agent may do: {error:#}")),
    }
    // A right that is only there once the first such object was written.
    match api.get(CUSTOM_RESOURCES).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => report.warn(
            host,
            "host: the ClusterRole atoll-proxy-agent-custom-resources of configs/kubernetes/agent-rbac.yaml is not there, so \
             virtual clusters cannot write custom resources that are in no namespace",
        ),
        Err(error) => {
            let error = chain(&error);
            report.warn(host, format_args!("host: its ClusterRoles cannot be read: {error}"));
        }
    }
    if let Err(error) = nodes(api, &config.virtual_clusters, report).await {
        report.warn(host, format_args!("host: its nodes cannot be listed: {error:#}"));
    }
    for (kind, path) in BINDINGS {
        match api.list(path, &Selection::default()).await {
            Ok(list) => open_to_all(host, kind, &list.items, report),
            Err(error) => {
                let error = chain(&error);
                report.warn(host, format_args!("host: its {kind}s cannot be listed: {error}"));
            }
        }
    }
}

/// The minor version, and the whole of it.
async fn version(api: &Api) -> anyhow::Result<(u32, String)> {
    let version = api.get("/version").await?;
    // Some distributions write `32+`.
    let minor = version["minor"].as_str().unwrap_or_default();
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    if version["major"] != "1" {
        bail!("/version is no Kubernetes version: {version}");
    }
    let text = version["gitVersion"].as_str().unwrap_or_default().to_owned();
    Ok((digits.parse().context("/version has no minor version")?, text))
}

/// What the agent should be allowed and is not, in words of `kubectl auth can-i`.
async fn missing(api: &Api) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for (words, attributes) in wanted(RBAC)? {
        let review =
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes});
        let answer = api.create(REVIEWS, &review).await?;
        if answer["status"]["allowed"] != true {
            missing.push(words);
        }
    }
    Ok(missing)
}

/// Every right of the ClusterRole in a file: in words, and as the `spec` of a review.
fn wanted(rbac: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(rbac).context("the agent's rules")?;
    let role = documents.iter().find(|document| document["kind"] == "ClusterRole").context("no ClusterRole")?;
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut wanted = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for verb in texts(&rule["verbs"]) {
            for path in texts(&rule["nonResourceURLs"]) {
                wanted.push((format!("{verb} {path}"), json!({"nonResourceAttributes": {"verb": verb, "path": path}})));
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let dotted = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
                    let attributes = json!({"verb": verb, "group": group, "resource": resource});
                    wanted.push((format!("{verb} {dotted}"), json!({"resourceAttributes": attributes})));
                }
            }
        }
    }
    Ok(wanted)
}

/// Slices without nodes, and nodes in two slices.
async fn nodes(api: &Api, clusters: &[Located<config::VirtualCluster>], report: &mut Report) -> anyhow::Result<()> {
    let selection = Selection { shape: Shape::Metadata, ..Selection::default() };
    let nodes = api.list("/api/v1/nodes", &selection).await?.items;
    let mut owned: Vec<(&str, &str)> = Vec::new();
    for cluster in clusters {
        let labels = cluster.labels();
        let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        // A selector that is none is said to be none already.
        let Ok(selector) = LabelSelector::from_labels(labels) else { continue };
        let matches = |node: &&Value| selector.matches(|key| node["metadata"]["labels"][key].as_str());
        let own: Vec<_> = nodes.iter().filter(matches).filter_map(|node| node["metadata"]["name"].as_str()).collect();
        let name = cluster.name.as_str();
        if own.is_empty() {
            report.warn(
                cluster,
                format_args!(
                    "virtual cluster {name}: no node of the host has {selector}, so its pods will stay Pending"
                ),
            );
        }
        if let Some((other, node)) = owned.iter().find(|(_, node)| own.contains(node)) {
            report.warn(
                cluster,
                format_args!(
                    "virtual cluster {name} shares nodes with {other}, {node} for one: each sees the other's load"
                ),
            );
        }
        owned.extend(own.into_iter().map(|node| (name, node)));
    }
    Ok(())
}

/// Bindings that are not Kubernetes' own and give something to everybody.
fn open_to_all(host: &Located<config::Host>, kind: &str, bindings: &[Value], report: &mut Report) {
    for binding in bindings {
        let metadata = &binding["metadata"];
        if metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults" {
            continue;
        }
        for (group, who) in EVERYBODY {
            let names = |subject: &Value| subject["kind"] == "Group" && subject["name"] == group;
            if binding["subjects"].as_array().into_iter().flatten().any(names) {
                let place = metadata["namespace"].as_str().map(|name| format!("{name}/")).unwrap_or_default();
                let name = metadata["name"].as_str().unwrap_or_default();
                let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
                report.warn(host, format_args!("host: {kind} {place}{name} gives {role} to {group}, so to {who}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_role_is_a_question() {
        let wanted = wanted(RBAC).unwrap();
        let words: Vec<_> = wanted.iter().map(|(words, _)| words.as_str()).collect();
        for right in ["get *", "list *.*", "impersonate users", "create tokenreviews.authentication.k8s.io"] {
            assert!(words.contains(&right), "{right}\n{words:#?}");
        }
        let expected =
            json!({"resourceAttributes": {"verb": "bind", "group": "rbac.authorization.k8s.io", "resource": "roles"}});
        assert!(wanted.iter().any(|(_, spec)| *spec == expected));
    }

    #[test]
    fn bindings_for_everybody_are_warned_of() {
        let mut report = Report::default();
        let binding = |name: &str, label: &str, group: &str| {
            json!({"metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": label}},
                "roleRef": {"name": "view"}, "subjects": [{"kind": "User", "name": group}, {"kind": "Group", "name": group}]})
        };
        let bindings = [
            binding("built-in", "rbac-defaults", "system:authenticated"),
            binding("ours", "", "vc:a:system:authenticated"),
            binding("open", "", "system:authenticated"),
        ];
        open_to_all(&Located::from(config::Host::default()), "ClusterRoleBinding", &bindings, &mut report);
        let mut out = Vec::new();
        assert!(report.write(std::path::Path::new("c"), &mut out).unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("c: warning: host: ClusterRoleBinding open gives view to system:authenticated"),
            "{text}"
        );
        assert!(text.ends_with("no mistakes, 1 warning\n"), "{text}");
    }
}
