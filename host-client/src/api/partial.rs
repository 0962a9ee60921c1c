//! The metadata of an object.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What the agent needs of a `PartialObjectMetadata`. The managed fields are not read: clients can make them large.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Partial {
    /// Its only field.
    pub metadata: ObjectMeta,
}

/// Of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields of ObjectMeta")]
pub struct ObjectMeta {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}
