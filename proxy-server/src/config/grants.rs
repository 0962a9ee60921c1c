//! `grants:`, the virtual clusters that agents may add by themselves.

use std::collections::HashSet;

use ops::config::{Duration, FilePath, Located, Problems};
use ops::date::DAY;
use protocol::registration::Mode;
use protocol::{AgentId, ClusterName};
use serde::Deserialize;

use super::cluster::{ClientCa, Cluster};
use super::pattern;
use super::through::Through;

/// Which agents may add clusters, and where their client CAs are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grants {
    /// The directory to which this process writes the client CA of each added cluster.
    pub directory: Located<FilePath>,
    /// The agents.
    pub agents: Vec<Located<Grant>>,
    /// What is in the kubeconfigs that agents request.
    #[serde(default)]
    pub kubeconfigs: Option<Kubeconfigs>,
}

/// The kubeconfigs of added clusters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubeconfigs {
    /// The listener that the clients use.
    #[serde(default)]
    pub through: Through,
    /// The URL of that listener for them.
    pub url: Located<String>,
    /// How long their certificates are valid.
    #[serde(default = "default_lifetime")]
    pub certificate_lifetime: Located<Duration>,
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
    /// Whether the agent gets certificates for users of its clusters.
    #[serde(default)]
    pub kubeconfigs: bool,
}

/// An agent can make this process write as many files, and answer for as many names.
const MAX_CLUSTERS: u32 = 10_000;

/// The agent renews a certificate at two thirds of this time, and the Secret must then reach those who use it.
const MIN_LIFETIME: std::time::Duration = std::time::Duration::from_secs(60);
/// Nobody needs a longer one, because the agent renews it.
const MAX_LIFETIME: std::time::Duration = DAY.saturating_mul(365);

fn default_max() -> u32 {
    100
}

fn default_lifetime() -> Located<Duration> {
    Duration::new(DAY).into()
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
    if let Some(kubeconfigs) = &grants.kubeconfigs {
        let Kubeconfigs { through, url, certificate_lifetime } = kubeconfigs;
        if let Some(form) = through.mistake(url) {
            problems.at(url, format_args!("grants.kubeconfigs.url must be {form}"));
        }
        if !(MIN_LIFETIME..=MAX_LIFETIME).contains(&certificate_lifetime.get()) {
            problems.at(certificate_lifetime, "grants.kubeconfigs.certificateLifetime must be from 1m to 8760h");
        }
    }
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
        if grant.kubeconfigs && grants.kubeconfigs.is_none() {
            problems.at(
                grant,
                format_args!("the grant of agent {id} has `kubeconfigs: true`, which requires `grants.kubeconfigs`"),
            );
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
