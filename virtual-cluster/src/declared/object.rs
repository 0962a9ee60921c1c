//! A VirtualCluster as the host stores it.

use std::collections::BTreeMap;

use ops::date::Moment;
use serde::Deserialize;
use serde_json::Value;

use super::FINALIZER;
use super::spec::{DeletionPolicy, Spec, SpecError};
use super::status::Status;

/// A VirtualCluster. The agent reads each part by itself, because a mistake in one must not hide the others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Declared {
    /// The metadata.
    pub metadata: Metadata,
    /// What the operator wants.
    #[serde(default)]
    spec: Value,
    /// What an agent has written last.
    #[serde(default)]
    status: Value,
}

/// The metadata of a VirtualCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields of ObjectMeta")]
pub struct Metadata {
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub creation_timestamp: Option<String>,
    pub deletion_timestamp: Option<String>,
    pub finalizers: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub owner_references: Vec<OwnerReference>,
}

/// The part of an OwnerReference that identifies the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OwnerReference {
    /// The uid of the owner.
    pub uid: String,
}

// === impl Declared ===

impl Declared {
    /// The virtual cluster that it declares.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        super::spec::read(&self.metadata.name, &self.spec)
    }

    /// What the operator wants, as the host stores it.
    pub(super) fn raw_spec(&self) -> &Value {
        &self.spec
    }

    /// What happens to its namespaces when it is deleted. This holds even if the rest of the specification is invalid.
    pub fn deletion_policy(&self) -> DeletionPolicy {
        super::spec::deletion_policy(&self.spec)
    }

    /// What an agent has written last. A status that cannot be parsed is replaced.
    pub fn status(&self) -> Status {
        Status::deserialize(&self.status).unwrap_or_default()
    }

    /// Whether somebody has deleted it. It exists until all finalizers are gone.
    pub fn is_ending(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// When somebody has deleted it.
    pub fn deleted(&self) -> Option<Moment> {
        let text = self.metadata.deletion_timestamp.clone()?;
        Moment::deserialize(Value::String(text)).ok()
    }

    /// Whether an agent serves it, or has served it.
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }
}
