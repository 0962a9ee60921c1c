//! The annotation of a root Namespace that lists the limits which its virtual cluster has reached.
//!
//! It is an annotation, so that all agents of a host read it from the Namespaces that they watch anyway. The value is a
//! list such as `secrets=50000,storage=1073741824`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rewrite::name::ROOT_LABEL;
use rewrite::{ClusterName, HostNamespace};
use serde_json::{Map, Value};

/// The key of the annotation.
pub const FULL: &str = "atoll.dev/full";

/// The limits that a virtual cluster has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Full(BTreeMap<Arc<str>, u64>);

// === impl Full ===

impl Full {
    /// The name of the limit for bytes. All names but this and [`Self::WRITTEN`] are resources, such as `secrets` or
    /// `deployments.apps`.
    pub const STORAGE: &'static str = "storage";

    /// The name of the limit for the bytes of recent versions.
    pub const WRITTEN: &'static str = "written";

    /// Reads the value of the annotation. What has another form is ignored.
    fn parse(text: &str) -> Self {
        let entries = text.split(',').filter_map(|entry| entry.split_once('='));
        Self(entries.filter_map(|(name, limit)| Some((name.into(), limit.parse().ok()?))).collect())
    }

    /// What a Namespace says about its virtual cluster, if it is the root namespace of one that is full.
    pub(super) fn of(host: &HostNamespace, namespace: &Value) -> Option<(ClusterName, Self)> {
        let metadata = &namespace["metadata"];
        let full = Self::parse(metadata["annotations"][FULL].as_str()?);
        let cluster = ClusterName::new(metadata["labels"][ROOT_LABEL].as_str()?).ok()?;
        (!full.is_empty() && *host == HostNamespace::root(&cluster)).then_some((cluster, full))
    }

    /// The root Namespace with the annotation for these limits.
    #[must_use]
    pub fn written_to(&self, mut namespace: Value) -> Value {
        let annotations = &mut namespace["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        if !self.is_empty() {
            annotations[FULL] = self.to_string().into();
        } else if let Some(annotations) = annotations.as_object_mut() {
            annotations.remove(FULL);
        }
        namespace
    }

    /// These limits, and those of `other` that are not among them.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(other.0.iter().chain(&self.0).map(|(name, limit)| (Arc::clone(name), *limit)).collect())
    }

    /// Whether no limit is reached.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of reached limits.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The names of the reached limits, and the limits.
    pub fn limits(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, limit)| (&**name, *limit))
    }

    /// The limit of this name, if it is reached.
    pub fn limit(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Adds a reached limit.
    pub fn add(&mut self, name: &str, limit: u64) {
        self.0.insert(name.into(), limit);
    }

    /// Whether `other` has all of these limits.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().all(|(name, limit)| other.0.get(name) == Some(limit))
    }
}

impl FromIterator<(Arc<str>, u64)> for Full {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u64)>>(limits: I) -> Self {
        Self(limits.into_iter().collect())
    }
}

/// The value of the annotation.
impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, limit)) in self.limits().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={limit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_is_read_as_written() {
        let full: Full = [("secrets".into(), 5), (Full::STORAGE.into(), 1 << 30)].into_iter().collect();
        assert_eq!(full.to_string(), "secrets=5,storage=1073741824");
        assert_eq!(Full::parse(&full.to_string()), full);
        assert_eq!(Full::parse("a,b=,c=d,e=1").to_string(), "e=1");
        let none = Full::default();
        assert!(none.is_within(&full) && !full.is_within(&none) && full.is_within(&full));
    }

    #[test]
    fn only_a_root_namespace_says_that_its_cluster_is_full() {
        let of = |host: &str, cluster: &str, value: &str| {
            let metadata = json!({"labels": {ROOT_LABEL: cluster}, "annotations": {FULL: value}});
            Full::of(&HostNamespace::new(host).unwrap(), &json!({"metadata": metadata}))
        };
        assert_eq!(of("atoll-root-ke", "ke", "pods=1").unwrap().0.as_str(), "ke");
        assert_eq!(of("atoll-root-ke", "ke", ""), None);
        assert_eq!(of("atoll-root-ke", "other", "pods=1"), None);
        assert_eq!(of("default-ke", "ke", "pods=1"), None);
    }
}
