//! Annotations of Namespaces from which the host's admission policies read the settings of a virtual cluster.
//!
//! One set of policies serves all virtual clusters. Their settings are stored on the Namespace, which a policy reads as
//! `namespaceObject`. CEL in Kubernetes can split text, but cannot parse JSON or YAML. So the values are lists whose
//! entries cannot contain the separators: the configuration accepts no other keys, values and ranges.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use rewrite::Guard;
use rewrite::name::NODE_PREFIX;
use rewrite::request::ProtectedKeys;
use serde_json::{Map, Value};

/// The labels of the cluster's nodes: `location=beijing,disk=ssd`.
pub const NODE_SELECTOR: &str = "atoll.dev/node-selector";
/// The tolerations of the cluster's pods: `key:operator:value:effect:seconds`, joined by commas.
pub const TOLERATIONS: &str = "atoll.dev/tolerations";
/// The ranges in which Services may have external addresses: `203.0.113.0/24,2001:db8::/64`.
pub const EXTERNAL_IPS: &str = "atoll.dev/external-ips";

/// The labels and annotations of the Namespace that clients may not write: [`ProtectedKeys`], joined by commas.
pub const PROTECTED: &str = "atoll.dev/protected-keys";

/// The custom resources of the namespace that clients may not write: `devices.devices.kubeedge.io`, joined by commas.
pub const RESERVED: &str = "atoll.dev/reserved-resources";

/// The keys of the labels that the expressions for nodes test, joined by commas.
pub const EXPRESSION_KEYS: &str = "atoll.dev/node-labels";

/// All of them.
pub const KEYS: [&str; 6] = [NODE_SELECTOR, TOLERATIONS, PROTECTED, EXTERNAL_IPS, RESERVED, EXPRESSION_KEYS];

/// What the operator of the host lets no client write, in the namespaces of all virtual clusters of an agent.
#[derive(Clone, Debug, Default)]
pub struct Reserved {
    /// Labels and annotations of the Namespaces.
    pub keys: ProtectedKeys,
    /// Custom resources, as `plural.group`.
    pub resources: Vec<String>,
}

/// The values of a Namespace, in the order of [`KEYS`]. Absent or empty values are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations([Option<Arc<str>>; KEYS.len()]);

// === impl Annotations ===

impl Annotations {
    /// Those of a virtual cluster, whose expressions test the labels with these keys.
    pub fn new(
        guard: &Guard,
        reserved: &Reserved,
        external_ips: impl IntoIterator<Item = impl Display>,
        expression_keys: BTreeSet<String>,
    ) -> Self {
        let selector = guard.selector().map(|(key, value)| format!("{key}={value}"));
        let tolerations = guard.tolerated().map(|it| {
            let seconds = it.seconds.map_or_else(String::new, |seconds| seconds.to_string());
            format!("{}:{}:{}:{}:{seconds}", it.key, it.operator, it.value, it.effect)
        });
        let patterns = reserved.keys.patterns().map(ToString::to_string);
        let ranges = external_ips.into_iter().map(|range| range.to_string());
        let resources = reserved.resources.iter().cloned();
        Self([
            joined(selector),
            joined(tolerations),
            joined(patterns),
            joined(ranges),
            joined(resources),
            joined(expression_keys.into_iter()),
        ])
    }

    /// Those of a Namespace object.
    pub fn of(namespace: &Value) -> Self {
        let annotations = &namespace["metadata"]["annotations"];
        let text = |key: &str| annotations[key].as_str().filter(|text| !text.is_empty()).map(Arc::from);
        Self(KEYS.map(text))
    }

    /// Keys and values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        KEYS.into_iter().zip(&self.0).filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// The Namespace with exactly these annotations; `None` if it has them already.
    pub fn repaired(&self, namespace: &Value) -> Option<Value> {
        if Self::of(namespace) == *self {
            return None;
        }
        let mut repaired = namespace.clone();
        let annotations = &mut repaired["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        for (key, value) in KEYS.into_iter().zip(&self.0) {
            match value {
                Some(value) => annotations[key] = Value::from(&**value),
                None => _ = annotations.as_object_mut().and_then(|annotations| annotations.remove(key)),
            }
        }
        Some(repaired)
    }

    /// Adds the keys of the labels by which the cluster selects its nodes.
    pub(super) fn collect_node_labels(&self, keys: &mut BTreeSet<String>) {
        let [selector, .., tested] = &self.0;
        let pairs = selector.iter().flat_map(|selector| selector.split(','));
        // The policy protects all labels of agents.
        let pairs = pairs.filter(|pair| !pair.starts_with(NODE_PREFIX));
        keys.extend(pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())));
        keys.extend(tested.iter().flat_map(|tested| tested.split(',')).map(str::to_owned));
    }
}

fn joined(items: impl Iterator<Item = String>) -> Option<Arc<str>> {
    let text = items.collect::<Vec<_>>().join(",");
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use rewrite::guard::Toleration;
    use serde_json::json;

    use super::*;

    fn annotations() -> Annotations {
        let labels = [("location", "beijing"), ("node-role.kubernetes.io/edge", "")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let gone = Toleration { effect: "NoExecute".to_owned(), seconds: Some(30), ..Toleration::of_key("gone") };
        let keys = ProtectedKeys::new(["example.com/*", "*.example.org/*"].map(|pattern| pattern.parse().unwrap()));
        let reserved =
            Reserved { keys, resources: ["widgets.example.com", "devices.example.org"].map(str::to_owned).into() };
        let guard = Guard::new(labels, [Toleration::of_key("edge"), gone]);
        let tested = ["tier", "location"].map(str::to_owned).into();
        Annotations::new(&guard, &reserved, ["203.0.113.0/24", "2001:db8::/64"], tested)
    }

    #[test]
    fn lists_have_separators_that_occur_in_no_value() {
        let expected = [
            (NODE_SELECTOR, "location=beijing,node-role.kubernetes.io/edge="),
            (TOLERATIONS, "edge:Exists:::,gone:Exists::NoExecute:30"),
            (
                PROTECTED,
                "resource.kubernetes.io/admin-access,scheduler.alpha.kubernetes.io/*,example.com/*,*.example.org/*",
            ),
            (EXTERNAL_IPS, "203.0.113.0/24,2001:db8::/64"),
            (RESERVED, "widgets.example.com,devices.example.org"),
            (EXPRESSION_KEYS, "location,tier"),
        ];
        assert_eq!(annotations().entries().collect::<Vec<_>>(), expected);
        let mut keys = BTreeSet::new();
        annotations().collect_node_labels(&mut keys);
        Annotations::default().collect_node_labels(&mut keys);
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["location", "node-role.kubernetes.io/edge", "tier"]);
    }

    #[test]
    fn a_namespace_is_repaired_and_keeps_other_annotations() {
        let wanted = annotations();
        for before in
            [json!({}), json!({"annotations": null}), json!({"annotations": {NODE_SELECTOR: "a=b", "c": "d"}})]
        {
            let namespace = json!({"metadata": before});
            let repaired = wanted.repaired(&namespace).unwrap();
            assert_eq!(Annotations::of(&repaired), wanted);
            assert_eq!(wanted.repaired(&repaired), None);
            assert_eq!(repaired["metadata"]["annotations"]["c"], before["annotations"]["c"]);
            let removed = Annotations::default().repaired(&repaired).unwrap();
            assert_eq!(Annotations::of(&removed), Annotations::default());
            assert_eq!(removed["metadata"]["annotations"]["c"], before["annotations"]["c"]);
        }
        assert_eq!(Annotations::default().repaired(&json!({"metadata": {"name": "a"}})), None);
    }
}
