//! A shared object as the host has it, with the overlays of virtual clusters.

use rewrite::name::{MANAGER_PREFIX, SHARED_LABEL, is_own_key};
use rewrite::pointer::Pointer;
use serde_json::{Map, Value, json};

use super::attached::{Attached, AttachedMut};
use super::overlay::{Keys, Overlay, OwnKeys, Stored};

/// The manager into which the API server merges the oldest updates of an object with more than ten managers
/// (`capmanagers.go` in apimachinery's `util/managedfields`). A manager among them that is not a virtual cluster was
/// noticed before, because every write checks the managers.
const ANCIENT: &str = "ancient-changes";

/// The approval of a definition in a protected group (`KubeAPIApprovedAnnotation` in apiextensions/v1).
const APPROVAL: &str = "api-approved.kubernetes.io";

/// An object of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostObject {
    value: Value,
    /// The origin of a stored overlay that [`load`](HostObject::load) has inserted in place of its pointer.
    stored: Option<Stored>,
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
        !self.is_marked() || self.attached().overlay(cluster).is_some()
    }

    /// The overlays in its annotations.
    pub fn attached(&self) -> Attached<'_> {
        Attached::new(self.metadata())
    }

    fn attached_mut(&mut self) -> AttachedMut<'_> {
        AttachedMut::new(self.map("annotations"))
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
        self.attached_mut().point(cluster, pointer);
    }

    /// Restores the pointer to the cluster's overlay.
    pub fn unload(&mut self, cluster: &str) {
        if let Some(Stored { id, .. }) = self.stored.take() {
            let pending_change = self.attached().overlay(cluster).and_then(|overlay| overlay.pending_change);
            self.point(cluster, &Pointer { id, pending_change });
        }
    }

    /// The labels and annotations that the operator gave it.
    pub fn own(&self) -> OwnKeys {
        if self.is_marked() {
            return OwnKeys::default();
        }
        let keys = |key: &str| serde_json::from_value(self.metadata()[key].clone()).unwrap_or_default();
        OwnKeys { labels: keys("labels"), annotations: keys("annotations") }
    }

    /// Marks the object as created by a virtual cluster.
    pub fn mark(&mut self) {
        self.map("labels").insert(SHARED_LABEL.to_owned(), json!(""));
    }

    /// Hands it over to the operator for good: all clusters see it, and none can change or delete it. Their overlays
    /// stay. Virtual clusters no longer manage its fields, because the operator's next apply would conflict with them.
    pub fn hand_over(&mut self) {
        self.map("labels").remove(SHARED_LABEL);
        self.attached_mut().forget_left();
        self.clear_pending_changes();
        if let Some(managers) = self.value["metadata"]["managedFields"].as_array_mut() {
            managers.retain(|entry| !is_of_cluster(entry));
        }
    }

    /// Adds the cluster to those that have the object, or replaces its overlay.
    pub fn join(&mut self, cluster: &str, overlay: &Overlay) {
        self.attached_mut().join(cluster, overlay);
    }

    /// Removes the cluster from those that have the object. Watches can still see that it had the object before.
    pub fn leave(&mut self, cluster: &str) {
        let is_marked = self.is_marked();
        let mut attached = self.attached_mut();
        attached.remove(cluster);
        if is_marked {
            attached.remember(cluster);
        }
    }

    /// Removes every trace of a cluster that no longer exists.
    pub(crate) fn forget(&mut self, cluster: &str) {
        let mut attached = self.attached_mut();
        attached.remove(cluster);
        attached.forget(cluster);
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
        let mut labels = self.own().labels;
        labels.extend(self.attached().overlay(cluster).unwrap_or_default().labels);
        labels.retain(|key, _| !is_own_key(key));
        labels
    }

    /// Removes the pending changes of all clusters.
    pub fn clear_pending_changes(&mut self) {
        if !self.metadata()["annotations"].is_null() {
            self.attached_mut().clear_pending_changes();
        }
    }

    /// The same object with all fields of `other` except `metadata` and `status`.
    #[must_use]
    pub fn saying(&self, other: &Value) -> Self {
        let mut merged = Map::new();
        for (key, value) in other.as_object().into_iter().flatten() {
            if key != "status" {
                merged.insert(key.clone(), value.clone());
            }
        }
        merged.insert("metadata".to_owned(), self.metadata().clone());
        Self { value: Value::Object(merged), stored: self.stored.clone() }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rewrite::pointer::StoredId;

    use super::*;

    fn object(labels: &Value) -> HostObject {
        HostObject::new(json!({"kind": "X", "metadata": {"name": "a", "labels": labels}, "spec": 1}))
    }

    fn keys(pairs: &[(&str, &str)]) -> Keys {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn clusters_join_and_leave() {
        let mut host = object(&json!({}));
        assert!(host.is_seen_by("ke"));
        host.mark();
        assert!(!host.is_seen_by("ke"));
        host.join("ke", &Overlay::default());
        host.join("hz", &Overlay { pending_change: Some("x".into()), ..Overlay::default() });
        assert_eq!(host.attached().owners().collect::<Vec<_>>(), ["hz", "ke"]);
        host.clear_pending_changes();
        assert_eq!(host.attached().overlay("hz"), Some(Overlay::default()));
        host.leave("ke");
        assert!(!host.is_seen_by("ke") && !host.attached().has_others("hz") && host.attached().has_others("ke"));
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
        assert_eq!(
            host.attached().overlay("ke"),
            Some(Overlay { pending_change: Some("ab".into()), ..Overlay::default() })
        );
        let overlay = Overlay { labels: keys(&[("a", "b")]), ..Overlay::default() };
        host.load("ke", host.attached().pointer("ke").unwrap(), overlay.clone());
        assert_eq!(
            host.attached().overlay("ke"),
            Some(Overlay { pending_change: Some("ab".into()), ..overlay.clone() })
        );
        assert_eq!(host.saying(&json!({"spec": 2})).stored(), Some(&Stored { id: id.clone(), overlay }));
        let mut back = host.clone();
        back.unload("ke");
        assert_eq!(back, pointed);
        host.clear_pending_changes();
        assert_eq!(host.attached().pointer("hz"), Some(Pointer { id, pending_change: None }));
        assert_eq!(
            (host.attached().overlay("ke").unwrap().pending_change, host.attached().pointer("ke")),
            (None, None)
        );
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
        assert_eq!(host.attached().overlay("ke"), Some(Overlay { labels: keys(&[("a", "b")]), ..Overlay::default() }));
        assert!(host.metadata()["annotations"]["left.atoll.dev/hz"].is_null());
    }

    #[test]
    fn over_an_operators_object_only_differences_are_kept() {
        let host = object(&json!({"a": "b", "c": "d"}));
        let mut overlay = Overlay::default();
        overlay.set(&json!({"labels": {"a": "b", "c": "x", "e": "f"}}), &host.own());
        assert_eq!(overlay.labels, keys(&[("c", "x"), ("e", "f")]));
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
            prop_assert_eq!(host.attached().overlay("ke"), Some(overlay));
            prop_assert_eq!(host.attached().overlay("hz"), Some(Overlay::default()));
            host.leave("ke");
            host.map("annotations").remove("left.atoll.dev/ke");
            prop_assert_eq!(host, before);
        }
    }
}
