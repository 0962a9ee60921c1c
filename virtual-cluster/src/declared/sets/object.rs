//! A VirtualClusterSet as the host stores it, and its status.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::follow::Named;
use super::super::object::Metadata;
use super::super::status::Condition;
use super::spec::{SetSpec, SetSpecError};

/// A VirtualClusterSet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClusterSet {
    /// The metadata.
    pub metadata: Metadata,
    /// What the operator wants.
    #[serde(default)]
    spec: Value,
    /// What an agent has written last.
    #[serde(default)]
    status: Value,
}

/// The status of a VirtualClusterSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SetStatus {
    pub(super) observed_generation: i64,
    /// The number of its VirtualClusters.
    pub(super) clusters: usize,
    /// How many of them are ready.
    pub(super) ready: usize,
    /// `Complete`.
    pub(super) conditions: Vec<Condition>,
}

// === impl ClusterSet ===

impl Named for ClusterSet {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl ClusterSet {
    /// What it declares.
    pub fn spec(&self) -> Result<SetSpec, SetSpecError> {
        super::spec::read(&self.spec)
    }

    pub(super) fn status(&self) -> SetStatus {
        SetStatus::deserialize(&self.status).unwrap_or_default()
    }
}
