//! The labels and annotations of one virtual cluster on a shared object.

use std::collections::{BTreeMap, BTreeSet};

use rewrite::pointer::StoredId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Labels or annotations.
pub type Keys = BTreeMap<String, String>;

/// The labels and annotations of an object that the operator created. An object that virtual clusters created has none:
/// all of them are in overlays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnKeys {
    /// The labels.
    pub labels: Keys,
    /// The annotations.
    pub annotations: Keys,
}

/// An overlay, and where it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The virtual cluster that it belongs to.
    pub id: StoredId,
    /// The labels and annotations.
    pub overlay: Overlay,
}

/// The overlay of one virtual cluster on a shared object: the value of an annotation, or [stored](super::overlays)
/// elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overlay {
    #[serde(skip_serializing_if = "Keys::is_empty")]
    /// The labels.
    pub labels: Keys,
    #[serde(skip_serializing_if = "Keys::is_empty")]
    /// The annotations.
    pub annotations: Keys,
    /// By manager, the labels and annotations of its last apply. The next apply removes those that it does not contain.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub applied: BTreeMap<String, Applied>,
    /// The [digest](super::digest) of the change that the cluster has requested and that awaits the
    /// [agreement](super::Agreement) of the others. Annotations on hosts have it under its former name.
    #[serde(rename = "wish", skip_serializing_if = "Option::is_none")]
    pub pending_change: Option<String>,
}

/// Keys that a manager has applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    /// The keys of labels.
    pub labels: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    /// The keys of annotations.
    pub annotations: BTreeSet<String>,
}

// === impl Overlay ===

impl Overlay {
    /// The overlay as it is stored.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("maps with texts for keys are JSON")
    }

    /// Sets the labels and annotations that a client wants, without those that the operator's object on the host has.
    pub fn set(&mut self, wanted: &Value, own: &OwnKeys) {
        let over = |key: &str, own: &Keys| {
            let mut keys: Keys = serde_json::from_value(wanted[key].clone()).unwrap_or_default();
            keys.retain(|key, value| own.get(key) != Some(value));
            keys
        };
        (self.labels, self.annotations) = (over("labels", &own.labels), over("annotations", &own.annotations));
    }

    /// Applies the keys of a manager. Keys that it applied before and does not apply now are removed, unless another
    /// manager applies them too.
    pub fn apply(&mut self, manager: &str, wanted: &Value) {
        let given = |key: &str| serde_json::from_value::<Keys>(wanted[key].clone()).unwrap_or_default();
        let (labels, annotations) = (given("labels"), given("annotations"));
        let before = self.applied.remove(manager).unwrap_or_default();
        for key in before.labels {
            if !self.applied.values().any(|other| other.labels.contains(&key)) {
                self.labels.remove(&key);
            }
        }
        for key in before.annotations {
            if !self.applied.values().any(|other| other.annotations.contains(&key)) {
                self.annotations.remove(&key);
            }
        }
        let now =
            Applied { labels: labels.keys().cloned().collect(), annotations: annotations.keys().cloned().collect() };
        if now != Applied::default() {
            self.applied.insert(manager.to_owned(), now);
        }
        self.labels.extend(labels);
        self.annotations.extend(annotations);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> Keys {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_apply_removes_keys_of_the_previous_one() {
        let mut overlay = Overlay { labels: keys(&[("kept", "1")]), ..Overlay::default() };
        overlay.apply("one", &json!({"labels": {"a": "1", "b": "1"}, "annotations": {"c": "1"}}));
        overlay.apply("two", &json!({"labels": {"b": "2"}}));
        assert_eq!(overlay.labels, keys(&[("a", "1"), ("b", "2"), ("kept", "1")]));
        overlay.apply("one", &json!({}));
        assert_eq!(overlay.labels, keys(&[("b", "2"), ("kept", "1")]));
        assert!(overlay.annotations.is_empty() && overlay.applied.len() == 1);
    }

    /// Annotations on hosts have this form, whatever the field is called here.
    #[test]
    fn a_pending_change_keeps_its_stored_name() {
        let overlay = Overlay { pending_change: Some("ab".into()), ..Overlay::default() };
        assert_eq!(overlay.text(), r#"{"wish":"ab"}"#);
        assert_eq!(serde_json::from_str::<Overlay>(&overlay.text()).unwrap(), overlay);
    }
}
