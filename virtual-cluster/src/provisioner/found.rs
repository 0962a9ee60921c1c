//! RoleBindings as the agent reads them.
//!
//! Clients write them, and can make them so large that their parsed subjects would need a hundred times the memory of
//! the stored object. So the agent keeps subjects as text, and parses only the fields that it needs.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use rewrite::name::CLUSTER_LABEL;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::names::{INTERNAL_LABEL, MIRROR_FINALIZER, MIRROR_LABEL, PROTECTED_LABEL};

/// A RoleBinding on the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) role_ref: Value,
    #[serde(default)]
    pub(super) subjects: Subjects,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) labels: Labels,
    /// Whether our finalizer is among the finalizers.
    #[serde(rename = "finalizers", deserialize_with = "has_ours")]
    pub(super) is_held: bool,
}

/// The labels that the agent uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Labels {
    #[serde(rename = "atoll.dev/mirror")]
    mirror: Option<String>,
    #[serde(rename = "atoll.dev/protected")]
    protected: Option<String>,
    #[serde(rename = "atoll.dev/internal")]
    internal: Option<String>,
    #[serde(rename = "atoll.dev/virtual-cluster")]
    cluster: Option<String>,
}

/// The subjects of a binding as canonical JSON, so that equal subjects have equal texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subjects {
    text: Arc<str>,
    count: usize,
}

/// Passes each element of an array to a function.
struct Each<T, F>(F, PhantomData<T>);

// === impl Found ===

impl Found {
    /// Reads an object; `None` if it is no RoleBinding.
    pub(super) fn of(object: &Value) -> Option<Self> {
        Self::deserialize(object).ok()
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The resource version. One that is not a number counts as older than all others.
    pub(super) fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }
}

// === impl Labels ===

impl Labels {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        match key {
            MIRROR_LABEL => self.mirror.as_deref(),
            PROTECTED_LABEL => self.protected.as_deref(),
            INTERNAL_LABEL => self.internal.as_deref(),
            CLUSTER_LABEL => self.cluster.as_deref(),
            _ => None,
        }
    }
}

// === impl Subjects ===

impl Subjects {
    /// The subjects in a JSON array.
    pub(super) fn of(subjects: &Value) -> Self {
        Self::deserialize(subjects).unwrap_or_default()
    }

    /// The length of the text.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Default for Subjects {
    fn default() -> Self {
        Self { text: "[]".into(), count: 0 }
    }
}

impl<'de> Deserialize<'de> for Subjects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut text, mut count) = (String::from("["), 0);
        each(deserializer, |subject: Value| {
            if count > 0 {
                text.push(',');
            }
            text.push_str(&subject.to_string());
            count += 1;
        })?;
        text.push(']');
        Ok(Self { text: text.into(), count })
    }
}

impl Serialize for Subjects {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: &RawValue = serde_json::from_str(&self.text).map_err(S::Error::custom)?;
        text.serialize(serializer)
    }
}

// === impl Each ===

impl<'de, T: DeserializeOwned, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            self.0(element);
        }
        Ok(())
    }
}

fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D, see: impl FnMut(T)) -> Result<(), D::Error> {
    deserializer.deserialize_any(Each(see, PhantomData))
}

fn has_ours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let mut has_ours = false;
    each(deserializer, |finalizer: String| has_ours |= finalizer == MIRROR_FINALIZER)?;
    Ok(has_ours)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Found {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn equal_subjects_have_equal_texts() {
        let [one, other] = [
            r#"{"metadata":{"name":"a"},"subjects":[{"kind":"User","name":"<"},{"kind":"Group","name":"b"}]}"#,
            r#"{"metadata":{"name":"a"}, "subjects": [{"name":"\u003c", "kind":"User"}, {"name":"b","kind":"Group"}]}"#,
        ]
        .map(|text| found(text).subjects);
        assert_eq!(one, other);
        assert_eq!(json!(one), json!([{"kind": "User", "name": "<"}, {"kind": "Group", "name": "b"}]));
        for none in [r#"{"metadata":{}}"#, r#"{"metadata":{},"subjects":null}"#, r#"{"metadata":{},"subjects":[]}"#] {
            assert_eq!(found(none).subjects, Subjects::default(), "{none}");
        }
    }

    #[test]
    fn labels_and_the_finalizer_are_read() {
        let text =
            r#"{"metadata":{"labels":{"a":"b","atoll.dev/mirror":"x"},"finalizers":["a/b","atoll.dev/mirror"]}}"#;
        let Metadata { labels, is_held, .. } = found(text).metadata;
        assert_eq!((labels.mirror.as_deref(), labels.protected, is_held), (Some("x"), None, true));
        assert!(!found(r#"{"metadata":{"finalizers":["a/b"]}}"#).metadata.is_held);
        assert!(!found(r#"{"metadata":{"finalizers":null}}"#).metadata.is_held);
    }
}
