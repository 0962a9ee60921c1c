//! The format of an export: YAML documents, the first and the last of which are about the export itself.
//!
//! The last one shows that the export is complete. Objects have their names on the host, and Atoll's labels.

use std::collections::BTreeMap;

use anyhow::bail;
use rewrite::ClusterName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const API_VERSION: &str = "atoll.dev/v1alpha1";
const HEADER: &str = "ClusterExport";
const END: &str = "ClusterExportEnd";

/// The first document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    api_version: String,
    kind: String,
    metadata: Name,
    /// The uid of `kube-system` that clients of the virtual cluster see.
    pub(super) identity: Option<String>,
    /// Whether it has Secrets.
    pub(super) secrets: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Name {
    name: String,
}

/// The last document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    api_version: String,
    kind: String,
    /// The number of objects by kind.
    pub(super) objects: BTreeMap<String, usize>,
}

/// A document of an export.
#[derive(Debug, PartialEq)]
pub(super) enum Document {
    Header(Header),
    Object(Value),
    End(End),
}

// === impl Header ===

impl Header {
    pub(super) fn new(cluster: &ClusterName, identity: Option<&str>, secrets: bool) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: HEADER.to_owned(),
            metadata: Name { name: cluster.to_string() },
            identity: identity.map(str::to_owned),
            secrets,
        }
    }

    /// The name of the virtual cluster.
    pub(super) fn cluster(&self) -> anyhow::Result<ClusterName> {
        match self.metadata.name.parse() {
            Ok(cluster) => Ok(cluster),
            Err(error) => bail!("the export is of {:?}, which is no virtual cluster: {error}", self.metadata.name),
        }
    }
}

// === impl End ===

impl End {
    pub(super) fn new(objects: BTreeMap<String, usize>) -> Self {
        Self { api_version: API_VERSION.to_owned(), kind: END.to_owned(), objects }
    }
}

// === impl Document ===

impl Document {
    pub(super) fn parse(value: Value) -> anyhow::Result<Self> {
        match (value["apiVersion"].as_str(), value["kind"].as_str()) {
            (Some(API_VERSION), Some(HEADER)) => Ok(Self::Header(serde_json::from_value(value)?)),
            (Some(API_VERSION), Some(END)) => Ok(Self::End(serde_json::from_value(value)?)),
            (Some(_), Some(_)) if value["metadata"]["name"].is_string() => Ok(Self::Object(value)),
            _ => bail!("a document has no apiVersion, no kind or no metadata.name"),
        }
    }
}
