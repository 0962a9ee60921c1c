//! The metadata of an object.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The fields of a `PartialObjectMetadata` that the agent reads. It does not read the managed fields, because clients
/// can make them large.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Partial {
    /// The metadata.
    pub metadata: ObjectMeta,
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields of ObjectMeta")]
pub struct ObjectMeta {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}
