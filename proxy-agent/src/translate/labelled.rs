//! The labels of an object, which decide whether the cluster sees it.

use std::collections::BTreeMap;

use kube_wire::envelope::EnvelopeError;
use kube_wire::selector::LabelSelector;
use rewrite::protobuf::ObjectMetadata;
use serde::Deserialize;

/// An object, or the Table that kubectl requests, which has the objects in its rows.
#[derive(Deserialize)]
pub(super) struct Labelled {
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "apiVersion")]
    api_version: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    rows: Option<Vec<Row>>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    object: Option<Object>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

// === impl Labelled ===

impl Labelled {
    pub(super) fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// The same for protobuf, which has no Tables.
    pub(super) fn of_protobuf(body: &[u8]) -> Result<Self, EnvelopeError> {
        let labels = Some(ObjectMetadata::of(body)?.labels);
        let (kind, api_version) = (String::new(), String::new());
        Ok(Self { kind, api_version, metadata: Metadata { labels }, rows: None })
    }

    /// Whether the selector matches the object, or every object of a Table.
    pub(super) fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        if self.kind != "Table" || !self.api_version.starts_with("meta.k8s.io/") {
            return self.metadata.is_selected_by(selector);
        }
        let mut rows = self.rows.iter().flatten();
        rows.all(|row| row.object.as_ref().is_some_and(|object| object.metadata.is_selected_by(selector)))
    }
}

// === impl Metadata ===

impl Metadata {
    fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        selector.matches(|key| self.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_of_a_table_are_in_its_rows() {
        let selector: LabelSelector = "location=beijing".parse().unwrap();
        let is_own = |text: &str| Labelled::parse(text.as_bytes()).unwrap().is_selected_by(&selector);
        let object = |location: &str| format!(r#"{{"metadata":{{"labels":{{"location":"{location}"}}}}}}"#);
        let table = |rows: &str| format!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{rows}]}}"#);
        let row = |location: &str| format!(r#"{{"cells":["a"],"object":{}}}"#, object(location));
        assert!(is_own(&object("beijing")) && !is_own(&object("hangzhou")) && !is_own("{}"));
        assert!(!is_own(r#"{"metadata":{"labels":null}}"#));
        assert!(is_own(&table(&row("beijing"))) && !is_own(&table(&row("hangzhou"))));
        assert!(!is_own(&table(&[row("beijing"), row("hangzhou")].join(","))));
        assert!(!is_own(&table(r#"{"cells":["a"],"object":null}"#)));
        // A custom resource of the kind Table is an ordinary object.
        let custom = table(&row("beijing")).replace("meta.k8s.io", "example.com");
        assert!(!is_own(&custom));
    }
}
