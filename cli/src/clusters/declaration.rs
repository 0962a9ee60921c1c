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
pub(super) struct Declarations(BTreeMap<String, BTreeSet<String>>);

// === impl Declarations ===

impl Declarations {
    /// Those that the host and the flags show.
    pub(super) async fn read(api: &Api, args: &AgentArgs) -> anyhow::Result<Self> {
        let mut found = Self::default();
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

    /// What declares this virtual cluster.
    pub(super) fn of(&self, cluster: &ClusterName) -> impl Iterator<Item = &str> {
        self.0.get(cluster.as_str()).into_iter().flatten().map(String::as_str)
    }

    /// The configurations of agents in a ConfigMap. Other texts are ignored.
    fn note_all(&mut self, config_map: &Value) {
        let metadata = &config_map["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
        let origin = format!("ConfigMap {}/{}", namespace.unwrap_or_default(), name.unwrap_or_default());
        let texts = config_map["data"].as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str());
        for text in texts.filter(|text| text.contains("ProxyAgentConfiguration")) {
            let Ok(config) = serde_saphyr::from_str::<Value>(text) else { continue };
            for cluster in config["virtualClusters"].as_array().into_iter().flatten() {
                if let Some(name) = cluster["name"].as_str() {
                    self.note(name, origin.clone());
                }
            }
        }
    }

    fn note(&mut self, cluster: &str, by: String) {
        self.0.entry(cluster.to_owned()).or_default().insert(by);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn config_maps_of_agents_declare_virtual_clusters() {
        let agent = "apiVersion: atoll.dev/v1alpha1\nkind: ProxyAgentConfiguration\nvirtualClusters:\n- {name: ke, nodeSelector: {a: b}}\n";
        let mut found = Declarations::default();
        for text in [agent, "kind: ProxyAgentConfiguration\n{", "virtualClusters: [{name: other}]"] {
            found.note_all(
                &json!({"metadata": {"namespace": "atoll-system", "name": "proxy-agent"}, "data": {"x": text}}),
            );
        }
        let of = |name: &str| found.of(&name.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(of("ke"), ["ConfigMap atoll-system/proxy-agent"]);
        assert!(of("other").is_empty());
    }
}
