//! The members of Karmada according to the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use protocol::ClusterName;
use protocol::registration::Mode;

use super::objects::Member;
use crate::config::{Grants, ProxyServerConfiguration};

/// The clusters that should be members, and the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// `None` if the configuration has no section `karmada`. Existing Clusters then stay as they are.
    pub(super) plane: Option<PlaneConfig>,
    /// The members by name.
    pub(super) members: BTreeMap<ClusterName, Member>,
    /// Clusters that are served only until Karmada has released them.
    pub(super) leaving: BTreeSet<ClusterName>,
    /// The names of clusters that agents may add.
    grants: Option<Grants>,
}

/// The control plane, and the label value of the Clusters that this configuration manages there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlaneConfig {
    pub(super) kubeconfig: PathBuf,
    pub(super) kept_by: String,
}

// === impl Desired ===

impl Desired {
    /// Reads a configuration.
    pub fn of(config: &ProxyServerConfiguration) -> Self {
        let Some(karmada) = &config.karmada else { return Self::default() };
        let plane = PlaneConfig { kubeconfig: karmada.kubeconfig.to_path_buf(), kept_by: karmada.kept_by.to_string() };
        let virtuals = config.clusters.iter().filter(|cluster| cluster.mode == Mode::Virtual);
        let members = virtuals
            .filter(|cluster| karmada.wants(&cluster.name))
            .map(|cluster| (cluster.name.clone(), Member::of(karmada, &cluster.name, &config.domain)))
            .collect();
        Self { plane: Some(plane), members, leaving: BTreeSet::new(), grants: config.grants.clone() }
    }

    /// The same, with these clusters as leaving.
    #[must_use]
    pub fn without(self, leaving: impl IntoIterator<Item = ClusterName>) -> Self {
        Self { leaving: leaving.into_iter().collect(), ..self }
    }

    /// Whether an agent may add a cluster of this name at any time. Its Cluster is not deleted only because this process does not
    /// know the cluster: the directory of the added clusters may be on a file system that is not there yet.
    pub(super) fn may_come(&self, name: &ClusterName) -> bool {
        self.grants.as_ref().is_some_and(|grants| grants.mention(name.as_str()))
    }

    /// Whether this cluster should be a member.
    pub fn has(&self, name: &ClusterName) -> bool {
        self.members.contains_key(name)
    }
}
