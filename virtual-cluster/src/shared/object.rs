//! A shared object as the host has it, with the overlays of virtual clusters.

use std::collections::{BTreeMap, BTreeSet};

use rewrite::name::{LEFT_PREFIX, MANAGER_PREFIX, OVERLAY_PREFIX, SHARED_LABEL, is_own_key};
use rewrite::pointer::{Pointer, StoredId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The manager into which the API server merges the oldest updates of an object with more than ten managers
/// (`capmanagers.go` in apimachinery's `util/managedfields`). A manager among them that is not a virtual cluster was
/// noticed before, because every write checks the managers.
const ANCIENT: &str = "ancient-changes";

/// The approval of a definition in a protected group (`KubeAPIApprovedAnnotation` in apiextensions/v1).
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Labels or annotations.
pub(super) type Keys = BTreeMap<String, String>;

/// An object of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostObject {
    value: Value,
    /// The origin of a stored overlay that [`load`](HostObject::load) has inserted in place of its pointer.
    stored: Option<Stored>,
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

// === impl HostObject ===

impl HostObject {
    /// An object as the host stores it.
    pub fn new(value: Value) -> Self {
        Self { value, stored: None }
    }

    /// The object as the host stores it.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    /// A text in its metadata. Empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.metadata()[key].as_str().unwrap_or_default()
    }

    /// Whether a virtual cluster created it. Otherwise it belongs to the operator.
    pub fn is_marked(&self) -> bool {
        !self.metadata()["labels"][SHARED_LABEL].is_null()
    }

    /// Whether it belongs to virtual clusters alone: one of them created it, and no other manager owns a part of it.
    pub fn is_of_clusters(&self) -> bool {
        self.is_marked() && !is_managed_outside(self.metadata())
    }

    /// Whether the cluster sees it.
    pub fn is_seen_by(&self, cluster: &str) -> bool {
        !self.is_marked() || self.overlay(cluster).is_some()
    }

    /// The overlay of the cluster. For an overlay that is stored elsewhere, only the pending change is known. An
    /// unreadable annotation counts as an overlay too.
    pub fn overlay(&self, cluster: &str) -> Option<Overlay> {
        if let Some(pointer) = self.pointer(cluster) {
            return Some(Overlay { pending_change: pointer.pending_change, ..Overlay::default() });
        }
        Some(serde_json::from_str(self.overlay_text(cluster)?).unwrap_or_default())
    }

    /// The pointer to the overlay of the cluster, if it is stored elsewhere.
    pub fn pointer(&self, cluster: &str) -> Option<Pointer> {
        Pointer::parse(self.overlay_text(cluster)?)
    }

    fn overlay_text(&self, cluster: &str) -> Option<&str> {
        self.metadata()["annotations"][format!("{OVERLAY_PREFIX}{cluster}")].as_str()
    }

    /// Replaces the pointer with the overlay of the cluster.
    pub fn load(&mut self, cluster: &str, pointer: Pointer, overlay: Overlay) {
        self.join(cluster, &Overlay { pending_change: pointer.pending_change, ..overlay.clone() });
        self.stored = Some(Stored { id: pointer.id, overlay });
    }

    /// The origin of the inserted overlay.
    pub fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Replaces the cluster's overlay with a pointer.
    pub fn point(&mut self, cluster: &str, pointer: &Pointer) {
        self.annotate(cluster, pointer.to_string());
    }

    /// Restores the pointer to the cluster's overlay.
    pub fn unload(&mut self, cluster: &str) {
        if let Some(Stored { id, .. }) = self.stored.take() {
            let pending_change = self.overlay(cluster).and_then(|overlay| overlay.pending_change);
            self.point(cluster, &Pointer { id, pending_change });
        }
    }

    /// All virtual clusters that have the object.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        let annotations = self.metadata()["annotations"].as_object().into_iter().flatten();
        annotations.filter_map(|(key, _)| key.strip_prefix(OVERLAY_PREFIX))
    }

    /// Whether another virtual cluster has the object too.
    pub fn has_others(&self, cluster: &str) -> bool {
        self.owners().any(|owner| owner != cluster)
    }

    /// The host's own labels.
    pub fn own(&self, key: &str) -> Keys {
        serde_json::from_value(self.metadata()[key].clone()).unwrap_or_default()
    }

    /// Marks the object as created by a virtual cluster.
    pub fn mark(&mut self) {
        self.map("labels").insert(SHARED_LABEL.to_owned(), json!(""));
    }

    /// Hands it over to the operator for good: all clusters see it, and none can change or delete it. Their overlays
    /// stay. Virtual clusters no longer manage its fields, because the operator's next apply would conflict with them.
    pub fn hand_over(&mut self) {
        self.map("labels").remove(SHARED_LABEL);
        self.map("annotations").retain(|key, _| !key.starts_with(LEFT_PREFIX));
        self.clear_pending_changes();
        if let Some(managers) = self.value["metadata"]["managedFields"].as_array_mut() {
            managers.retain(|entry| !is_of_cluster(entry));
        }
    }

    /// Adds the cluster to those that have the object, or replaces its overlay.
    pub fn join(&mut self, cluster: &str, overlay: &Overlay) {
        self.annotate(cluster, overlay.text());
    }

    fn annotate(&mut self, cluster: &str, text: String) {
        let annotations = self.map("annotations");
        annotations.remove(&format!("{LEFT_PREFIX}{cluster}"));
        annotations.insert(format!("{OVERLAY_PREFIX}{cluster}"), text.into());
    }

    /// Removes the cluster from those that have the object. Watches can still see that it had the object before.
    pub fn leave(&mut self, cluster: &str) {
        let is_marked = self.is_marked();
        let annotations = self.map("annotations");
        annotations.remove(&format!("{OVERLAY_PREFIX}{cluster}"));
        if is_marked {
            annotations.insert(format!("{LEFT_PREFIX}{cluster}"), json!(""));
        }
    }

    /// Copies the approval annotation to the host's object: the host requires it for definitions in protected groups
    /// (`validateAPIApproval` in apiextensions-apiserver).
    pub fn approve(&mut self, wanted: &Value) {
        if let Some(approval) = wanted["annotations"][APPROVAL].as_str() {
            self.map("annotations").insert(APPROVAL.to_owned(), approval.into());
        }
    }

    /// The labels that the cluster sees.
    pub fn labels_shown_to(&self, cluster: &str) -> Keys {
        let mut labels = if self.is_marked() { Keys::new() } else { self.own("labels") };
        labels.extend(self.overlay(cluster).unwrap_or_default().labels);
        labels.retain(|key, _| !is_own_key(key));
        labels
    }

    /// Removes the pending changes of all clusters.
    pub fn clear_pending_changes(&mut self) {
        let owners: Vec<String> = self.owners().map(str::to_owned).collect();
        for owner in owners {
            if let Some(pointer) = self.pointer(&owner) {
                self.point(&owner, &Pointer { pending_change: None, ..pointer });
            } else if let Some(overlay) = self.overlay(&owner).filter(|overlay| overlay.pending_change.is_some()) {
                self.join(&owner, &Overlay { pending_change: None, ..overlay });
            }
        }
    }

    /// The same object with all fields of `other` except `metadata` and `status`.
    #[must_use]
    pub fn saying(&self, other: &Value) -> Self {
        let mut said = Map::new();
        for (key, value) in other.as_object().into_iter().flatten() {
            if key != "status" {
                said.insert(key.clone(), value.clone());
            }
        }
        said.insert("metadata".to_owned(), self.metadata().clone());
        Self { value: Value::Object(said), stored: self.stored.clone() }
    }

    /// Replaces a member of the object.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Some(metadata) = self.value["metadata"].as_object_mut() {
            metadata.insert(key.to_owned(), value);
        }
    }

    fn map(&mut self, key: &str) -> &mut Map<String, Value> {
        if !self.value["metadata"].is_object() {
            self.value["metadata"] = json!({});
        }
        let map = &mut self.value["metadata"][key];
        if !map.is_object() {
            *map = json!({});
        }
        map.as_object_mut().expect("it is one now")
    }
}

/// Whether an entry of `managedFields` belongs to Atoll: that of a virtual cluster, or that of its overlay.
fn is_of_cluster(entry: &Value) -> bool {
    entry["manager"].as_str().is_some_and(|manager| manager.starts_with(MANAGER_PREFIX))
}

/// Whether a manager outside virtual clusters owns a part of the object other than its status and finalizers, which the
/// host's own controllers write.
fn is_managed_outside(metadata: &Value) -> bool {
    metadata["managedFields"].as_array().into_iter().flatten().any(|entry| {
        let is_ours = is_of_cluster(entry) || entry["manager"] == ANCIENT;
        let is_status = entry["subresource"].as_str().is_some_and(|subresource| !subresource.is_empty());
        let fields = entry["fieldsV1"].as_object().into_iter().flatten();
        !is_ours && !is_status && fields.into_iter().any(|(key, value)| is_claim(key, value))
    })
}

/// Whether the manager of this field owns the object.
fn is_claim(key: &str, value: &Value) -> bool {
    match key {
        "f:status" => false,
        "f:metadata" => value.as_object().into_iter().flatten().any(|(key, _)| key != "f:finalizers"),
        _ => true,
    }
}

// === impl Overlay ===

impl Overlay {
    /// The overlay as it is stored.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("maps with texts for keys are JSON")
    }

    /// Sets the labels and annotations that a client wants, without those that the operator's object on the host has.
    pub fn set(&mut self, wanted: &Value, host: &HostObject) {
        let over = |key: &str| {
            let mut keys: Keys = serde_json::from_value(wanted[key].clone()).unwrap_or_default();
            if !host.is_marked() {
                let own = host.own(key);
                keys.retain(|key, value| own.get(key) != Some(value));
            }
            keys
        };
        (self.labels, self.annotations) = (over("labels"), over("annotations"));
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
    use proptest::prelude::*;

    use super::*;

    fn object(labels: &Value) -> HostObject {
        HostObject::new(json!({"kind": "X", "metadata": {"name": "a", "labels": labels}, "spec": 1}))
    }

    fn keys(pairs: &[(&str, &str)]) -> Keys {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn clusters_come_and_go() {
        let mut host = object(&json!({}));
        assert!(host.is_seen_by("ke"));
        host.mark();
        assert!(!host.is_seen_by("ke"));
        host.join("ke", &Overlay::default());
        host.join("hz", &Overlay { pending_change: Some("x".into()), ..Overlay::default() });
        assert_eq!(host.owners().collect::<Vec<_>>(), ["hz", "ke"]);
        host.clear_pending_changes();
        assert_eq!(host.overlay("hz"), Some(Overlay::default()));
        host.leave("ke");
        assert!(!host.is_seen_by("ke") && !host.has_others("hz") && host.has_others("ke"));
        assert_eq!(host.metadata()["annotations"]["left.atoll.dev/ke"], "");
        host.join("ke", &Overlay::default());
        assert!(host.metadata()["annotations"]["left.atoll.dev/ke"].is_null());
    }

    #[test]
    fn a_manager_of_a_part_owns_the_object() {
        let managed = |entry: Value| {
            let own = json!({"manager": "atoll:ke:kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}});
            let metadata = json!({"labels": {SHARED_LABEL: ""}, "managedFields": [own, entry]});
            HostObject::new(json!({"metadata": metadata})).is_of_clusters()
        };
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "fieldsV1": fields});
        for (fields, is_of_clusters) in [
            (json!({"f:spec": {"f:group": {}}}), false),
            (json!({"f:value": {}}), false),
            // `kubectl apply` of an object that already exists.
            (
                json!({"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}}),
                false,
            ),
            (json!({"f:metadata": {"f:ownerReferences": {}}}), false),
            (json!({"f:metadata": {"f:finalizers": {}}}), true),
            (json!({"f:status": {"f:conditions": {}}}), true),
            (json!({}), true),
        ] {
            assert_eq!(managed(entry("helm", fields.clone())), is_of_clusters, "{fields}");
            assert!(managed(entry("atoll:hz:helm", fields)));
        }
        assert!(managed(entry("ancient-changes", json!({"f:spec": {}}))));
        let mut status = entry("kube-apiserver", json!({"f:spec": {}}));
        status["subresource"] = json!("status");
        assert!(managed(status));
        assert!(!HostObject::new(json!({"metadata": {}})).is_of_clusters());
    }

    #[test]
    fn pointers_stand_for_overlays() {
        let id = StoredId::new(7);
        let mut host = object(&json!({}));
        host.mark();
        host.point("ke", &Pointer { id: id.clone(), pending_change: Some("ab".into()) });
        host.point("hz", &Pointer { id: id.clone(), pending_change: Some("ab".into()) });
        let pointed = host.clone();
        assert_eq!(host.overlay("ke"), Some(Overlay { pending_change: Some("ab".into()), ..Overlay::default() }));
        let overlay = Overlay { labels: keys(&[("a", "b")]), ..Overlay::default() };
        host.load("ke", host.pointer("ke").unwrap(), overlay.clone());
        assert_eq!(host.overlay("ke"), Some(Overlay { pending_change: Some("ab".into()), ..overlay.clone() }));
        assert_eq!(host.saying(&json!({"spec": 2})).stored(), Some(&Stored { id: id.clone(), overlay }));
        let mut back = host.clone();
        back.unload("ke");
        assert_eq!(back, pointed);
        host.clear_pending_changes();
        assert_eq!(host.pointer("hz"), Some(Pointer { id, pending_change: None }));
        assert_eq!((host.overlay("ke").unwrap().pending_change, host.pointer("ke")), (None, None));
    }

    #[test]
    fn all_clusters_see_a_definition_after_its_handover() {
        let mut host = object(&json!({}));
        host.mark();
        host.join(
            "ke",
            &Overlay { pending_change: Some("x".into()), labels: keys(&[("a", "b")]), ..Overlay::default() },
        );
        host.leave("hz");
        let entry = |manager: &str| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {}}});
        host.set("managedFields", json!([entry("atoll:ke:kubectl"), entry("helm")]));
        host.hand_over();
        assert!(host.is_seen_by("xx") && !host.is_of_clusters());
        assert_eq!(host.metadata()["managedFields"], json!([entry("helm")]));
        assert_eq!(host.overlay("ke"), Some(Overlay { labels: keys(&[("a", "b")]), ..Overlay::default() }));
        assert!(host.metadata()["annotations"]["left.atoll.dev/hz"].is_null());
    }

    #[test]
    fn over_an_operators_object_only_differences_are_kept() {
        let host = object(&json!({"a": "b", "c": "d"}));
        let mut overlay = Overlay::default();
        overlay.set(&json!({"labels": {"a": "b", "c": "x", "e": "f"}}), &host);
        assert_eq!(overlay.labels, keys(&[("c", "x"), ("e", "f")]));
    }

    #[test]
    fn an_apply_takes_back_what_it_has_given() {
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

    proptest! {
        #[test]
        fn joining_changes_no_other_overlay(
            labels in proptest::collection::btree_map("\\PC{0,6}", "\\PC{0,6}", 0..4),
            pending_change in proptest::option::of("[a-f0-9]{4}"),
        ) {
            let mut host = object(&json!({}));
            host.mark();
            host.join("hz", &Overlay::default());
            let before = host.clone();
            let overlay = Overlay { labels, pending_change, ..Overlay::default() };
            host.join("ke", &overlay);
            prop_assert_eq!(host.overlay("ke"), Some(overlay));
            prop_assert_eq!(host.overlay("hz"), Some(Overlay::default()));
            host.leave("ke");
            host.map("annotations").remove("left.atoll.dev/ke");
            prop_assert_eq!(host, before);
        }
    }
}
