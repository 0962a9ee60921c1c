//! What still declares a virtual cluster, as far as this command can see it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use host_client::api::{Api, HostApi as _, Partial, Selection};
use proxy_agent::ProxyAgentConfiguration;
use rewrite::ClusterName;
use serde_json::Value;
use virtual_cluster::declared;

/// The ConfigMaps of `configs/kubernetes` and of the Helm chart.
const CONFIG_MAPS: &str = "/api/v1/configmaps";
const PART_OF_ATOLL: &str = "app.kubernetes.io/part-of=atoll";

#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    /// The configuration of a proxy-agent of this host. You can repeat this flag. VirtualCluster objects, and the
    /// configurations of agents that run in this host cluster, are found without it.
    #[arg(long, value_name = "FILE")]
    agent_config: Vec<PathBuf>,
}

/// What declares each virtual cluster.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    by_cluster: BTreeMap<String, BTreeSet<String>>,
    /// ConfigMaps with the configuration of an agent that this command cannot read.
    unreadable: BTreeSet<String>,
    /// Whether the user has named the configurations of agents.
    has_files: bool,
}

// === impl Declarations ===

impl Declarations {
    /// Those that the host and the flags show.
    pub(super) async fn read(api: &Api, args: &AgentArgs) -> anyhow::Result<Self> {
        let mut found = Self { has_files: !args.agent_config.is_empty(), ..Self::default() };
        for path in &args.agent_config {
            let config: ProxyAgentConfiguration = ops::config::load(path)?;
            for cluster in &config.virtual_clusters {
                found.note(cluster.name.as_str(), path.display().to_string());
            }
        }
        let objects = api.each(declared::PATH, "", |Partial { metadata }| {
            found.note(&metadata.name, format!("VirtualCluster {}", metadata.name));
        });
        match objects.await {
            // The kind is not defined.
            Err(error) if error.is_not_found() => {}
            outcome => outcome?,
        }
        let selection = Selection::labelled(PART_OF_ATOLL);
        let mut pages = api.pages(CONFIG_MAPS, &selection);
        while let Some(page) = pages.next::<Value>().await? {
            for config_map in &page {
                found.note_all(config_map);
            }
        }
        Ok(found)
    }

    /// Those in a ConfigMap with these texts.
    #[cfg(test)]
    pub(super) fn for_tests(texts: &[&str]) -> Self {
        let mut found = Self::default();
        for text in texts {
            found.note_all(&serde_json::json!({"metadata": {"namespace": "a", "name": "b"}, "data": {"x": text}}));
        }
        found
    }

    /// What declares this virtual cluster.
    pub(super) fn of(&self, cluster: &ClusterName) -> impl Iterator<Item = &str> {
        self.by_cluster.get(cluster.as_str()).into_iter().flatten().map(String::as_str)
    }

    /// The ConfigMaps which may declare virtual clusters that this command does not know. The flag `--agent-config` says what they
    /// contain.
    pub(super) fn unreadable(&self) -> Option<String> {
        let has_any = !self.has_files && !self.unreadable.is_empty();
        has_any.then(|| self.unreadable.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    }

    /// The configurations of agents in a ConfigMap. Other texts are ignored.
    fn note_all(&mut self, config_map: &Value) {
        let metadata = &config_map["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
        let origin = format!("ConfigMap {}/{}", namespace.unwrap_or_default(), name.unwrap_or_default());
        let texts = config_map["data"].as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str());
        for text in texts.filter(|text| text.contains("ProxyAgentConfiguration")) {
            match declared_in(text) {
                Some(names) => names.iter().for_each(|name| self.note(name, origin.clone())),
                None => _ = self.unreadable.insert(origin.clone()),
            }
        }
    }

    fn note(&mut self, cluster: &str, by: String) {
        self.by_cluster.entry(cluster.to_owned()).or_default().insert(by);
    }
}

/// The virtual clusters of an agent's configuration. `None` if it cannot be read.
fn declared_in(text: &str) -> Option<Vec<String>> {
    let config: Value = serde_saphyr::from_str(text).ok()?;
    let clusters = match &config["virtualClusters"] {
        Value::Null => return Some(Vec::new()),
        clusters => clusters.as_array()?,
    };
    clusters.iter().map(|cluster| cluster["name"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn config_maps_of_agents_declare_virtual_clusters() {
        let agent = "apiVersion: atoll.dev/v1alpha1\nkind: ProxyAgentConfiguration\nvirtualClusters:\n- {name: ke, nodeSelector: {a: b}}\n";
        let mut found = Declarations::default();
        for text in [agent, "kind: ProxyAgentConfiguration", "virtualClusters: [{name: other}]"] {
            found.note_all(
                &json!({"metadata": {"namespace": "atoll-system", "name": "proxy-agent"}, "data": {"x": text}}),
            );
        }
        let of = |name: &str| found.of(&name.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(of("ke"), ["ConfigMap atoll-system/proxy-agent"]);
        assert!(of("other").is_empty());
        assert_eq!(found.unreadable(), None);
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_not_no_declaration() {
        for text in ["{", "virtualClusters: {}", "virtualClusters: [{}]", "virtualClusters: [ke]", "---\na: b"] {
            let text = format!("kind: ProxyAgentConfiguration\n{text}");
            let mut found = Declarations::for_tests(&[&text]);
            assert_eq!(found.unreadable().as_deref(), Some("ConfigMap a/b"), "{text}");
            found.has_files = true;
            assert_eq!(found.unreadable(), None, "{text}");
        }
    }
}
