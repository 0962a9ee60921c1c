//! `grants:`, the virtual clusters that agents may add by themselves.

use std::collections::HashSet;

use ops::config::{FilePath, Located, Problems};
use protocol::registration::Mode;
use protocol::{AgentId, ClusterName};
use serde::Deserialize;

use super::cluster::{ClientCa, Cluster};
use super::pattern;

/// Which agents may add clusters, and where their client CAs are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grants {
    /// The directory to which this process writes the client CA of each added cluster.
    pub directory: Located<FilePath>,
    /// The agents.
    pub agents: Vec<Located<Grant>>,
}

/// What one agent may add.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The agent.
    pub id: AgentId,
    /// Names of clusters, or patterns with `*`.
    pub names: Vec<Located<String>>,
    /// How many clusters of the agent may exist at the same time.
    #[serde(default = "default_max")]
    pub max_clusters: u32,
    /// Whether the agent chooses what Karmada's policies can select its clusters by.
    #[serde(default)]
    pub member_settings: bool,
}

/// An agent can make this process write as many files, and answer for as many names.
const MAX_CLUSTERS: u32 = 10_000;

fn default_max() -> u32 {
    100
}

// === impl Grants ===

impl Grants {
    /// The grant by which an agent may add a cluster of this name.
    pub fn allow(&self, agent: &AgentId, name: &ClusterName) -> Option<&Grant> {
        let grant = self.of(agent)?;
        grant.names.iter().any(|pattern| pattern::matches(pattern, name.as_str())).then_some(grant)
    }

    /// The grant of an agent.
    pub(crate) fn of(&self, agent: &AgentId) -> Option<&Grant> {
        self.agents.iter().find(|grant| grant.id == *agent).map(|grant| &**grant)
    }

    /// The entry of a cluster that an agent has added.
    pub fn cluster(&self, name: &ClusterName, agent: &AgentId) -> Cluster {
        let file = |extension| self.directory.join(name.as_str()).join("client-ca").with_extension(extension).into();
        Cluster {
            name: name.clone(),
            agents: vec![agent.clone()],
            mode: Mode::Virtual,
            client_ca: Some(ClientCa { certificate: file("crt"), key: Some(file("key")) }),
            api_server: None,
            destinations: Vec::new(),
            oidc: None,
            audit: None,
        }
    }

    /// Whether a pattern matches the name.
    pub(crate) fn mention(&self, name: &str) -> bool {
        self.agents.iter().flat_map(|grant| &grant.names).any(|pattern| pattern::matches(pattern, name))
    }
}

pub(super) fn check(grants: &Grants, problems: &mut Problems) {
    let mut ids = HashSet::new();
    for grant in &grants.agents {
        let id = &grant.id;
        if !ids.insert(id) {
            problems.at(grant, format_args!("agent {id} has two grants; list all names in one"));
        }
        if grant.names.is_empty() {
            problems.at(grant, format_args!("the grant of agent {id} needs names, such as `site-*`"));
        }
        if !(1..=MAX_CLUSTERS).contains(&grant.max_clusters) {
            problems.at(grant, format_args!("maxClusters must be from 1 to {MAX_CLUSTERS}"));
        }
        for pattern in &grant.names {
            let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-*".contains(&byte);
            if pattern.is_empty() || !pattern.bytes().all(is_valid) {
                problems.at(
                    pattern,
                    format_args!("`{}` matches no name: a name has lower-case letters, digits and `-`", **pattern),
                );
            }
        }
    }
}
