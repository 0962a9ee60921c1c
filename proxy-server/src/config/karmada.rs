//! `karmada:`, which makes virtual clusters members of a Karmada control plane.

use std::collections::{BTreeMap, HashSet};

use http::header::{HeaderName, HeaderValue};
use kube_wire::selector::LabelSelector;
use ops::config::{FilePath, Located, Problems};
use protocol::registration::Mode;
use protocol::{ClusterName, MemberSettings};
use serde::Deserialize;

use super::cluster::Cluster;
use super::grants::Grants;
use super::pattern;
use super::through::Through;

/// The label of a Cluster for the proxy-server that manages it.
pub const KEPT_BY: &str = "atoll.dev/kept-by";

/// The maximum length of the name of a Cluster: Karmada adds a prefix (`pkg/apis/cluster/validation`).
pub const LONGEST_NAME: usize = 48;

/// How virtual clusters become members, and which.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Karmada {
    /// A kubeconfig for Karmada's API server.
    pub kubeconfig: Located<FilePath>,
    /// Distinguishes the Clusters of this proxy-server and its replicas from those of others.
    pub kept_by: Located<String>,
    /// The virtual clusters to join: names, or patterns with `*`.
    pub clusters: Vec<Located<String>>,
    /// The listener that Karmada uses.
    #[serde(default)]
    pub through: Through,
    /// The URL of that listener for Karmada.
    pub url: Located<String>,
    /// Headers of Karmada's CONNECT.
    #[serde(default)]
    pub proxy_header: BTreeMap<String, String>,
    /// Settings of single clusters.
    #[serde(default)]
    pub members: Vec<Located<MemberFacts>>,
}

/// Fields of a Cluster that Karmada's policies can select by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberFacts {
    /// The virtual cluster.
    pub name: ClusterName,
    /// Labels of its Cluster.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The provider of its Cluster.
    #[serde(default)]
    pub provider: Option<String>,
    /// The region of its Cluster.
    #[serde(default)]
    pub region: Option<String>,
    /// The zones of its Cluster.
    #[serde(default)]
    pub zones: Vec<String>,
}

// === impl MemberFacts ===

impl MemberFacts {
    /// The settings that an agent has chosen for a cluster.
    pub fn of(name: &ClusterName, settings: &MemberSettings) -> Self {
        let MemberSettings { labels, provider, region, zones } = settings.clone();
        Self { name: name.clone(), labels, provider, region, zones }
    }
}

// === impl Karmada ===

impl Karmada {
    /// Whether a virtual cluster should be a member.
    pub fn wants(&self, name: &ClusterName) -> bool {
        self.clusters.iter().any(|pattern| pattern::matches(pattern, name.as_str()))
    }

    /// The settings of one virtual cluster.
    pub fn facts(&self, name: &ClusterName) -> Option<&MemberFacts> {
        self.members.iter().find(|facts| facts.name == *name).map(|facts| &**facts)
    }
}

pub(super) fn check(
    karmada: &Karmada,
    clusters: &[Located<Cluster>],
    grants: Option<&Grants>,
    problems: &mut Problems,
) {
    let virtuals: Vec<&Located<Cluster>> = clusters.iter().filter(|cluster| cluster.mode == Mode::Virtual).collect();
    check_way(karmada, problems);
    // It is the value of a label, and goes into a query unescaped.
    if karmada.kept_by.is_empty() || LabelSelector::from_labels([(KEPT_BY, karmada.kept_by.as_str())]).is_err() {
        problems.at(&karmada.kept_by, "karmada.keptBy must be the value of a label: at most 63 letters, digits, `-_.`");
    }
    for pattern in &karmada.clusters {
        let is_known = virtuals.iter().any(|cluster| cluster.name.as_str() == **pattern);
        let is_granted = grants.is_some_and(|grants| grants.mention(pattern));
        if !pattern.contains('*') && !is_known && !is_granted {
            problems.at(pattern, format_args!("karmada.clusters: `{pattern}` is not a virtual cluster of this file"));
        }
    }
    for cluster in virtuals.iter().filter(|cluster| karmada.wants(&cluster.name)) {
        if cluster.name.as_str().len() > LONGEST_NAME {
            problems.at(
                cluster,
                format_args!(
                    "{} cannot be a member of Karmada: its names have {LONGEST_NAME} characters at most",
                    cluster.name
                ),
            );
        }
    }
    let mut seen = HashSet::new();
    for facts in &karmada.members {
        let name = &facts.name;
        if !seen.insert(name) {
            problems.at(facts, format_args!("karmada.members: {name} is listed twice"));
        }
        if !virtuals.iter().any(|cluster| cluster.name == *name) || !karmada.wants(name) {
            problems.at(facts, format_args!("karmada.members: karmada.clusters does not select {name}"));
        }
        for (key, value) in &facts.labels {
            if key.starts_with("atoll.dev/") || LabelSelector::from_labels([(key.as_str(), value.as_str())]).is_err() {
                problems.at(facts, format_args!("karmada.members: `{key}: {value}` cannot be a label of {name}"));
            }
        }
        let texts = facts.zones.iter().chain(&facts.provider).chain(&facts.region);
        if texts.into_iter().any(String::is_empty) {
            problems.at(facts, format_args!("karmada.members: provider, region and zones of {name} must not be empty"));
        }
    }
}

fn check_way(karmada: &Karmada, problems: &mut Problems) {
    let url = &karmada.url;
    if let Some(form) = karmada.through.mistake(url) {
        problems.at(url, format_args!("karmada.url must be {form}"));
    } else if karmada.through == Through::Endpoint && !karmada.proxy_header.is_empty() {
        problems.at(url, "karmada.proxyHeader needs `through: proxy`");
    }
    for (name, value) in &karmada.proxy_header {
        if HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err() {
            // The value may be a secret.
            problems.at(&karmada.kubeconfig, format_args!("karmada.proxyHeader: `{name}` is not a header"));
        }
    }
}
