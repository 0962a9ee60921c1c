//! RoleBindings as they should be, and how existing ones differ from that.

use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use serde::Serialize;
use serde_json::{Value, json};

use super::found::{Found, Subjects};
use super::names::{CLUSTER_ADMIN, INTERNAL_LABEL, MIRROR_FINALIZER, MIRROR_LABEL, MIRROR_PREFIX, PROTECTED_LABEL};

/// The group of RBAC's kinds.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
/// The value of our labels, which are flags.
const SET: &str = "true";

/// The content of a virtual cluster's ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binding {
    pub(super) name: String,
    /// The resource version of the RoleBinding in the root namespace.
    pub(super) version: u64,
    subjects: Subjects,
    role_ref: Value,
}

/// A RoleBinding as it must exist on the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) name: String,
    label: &'static str,
    /// The virtual cluster that a binding in a root namespace names in its label.
    cluster: Option<ClusterName>,
    finalizer: Option<&'static str>,
    subjects: Subjects,
    role_ref: Value,
}

/// How to make an existing RoleBinding the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Repair {
    /// It already is.
    Nothing,
    /// Apply this patch.
    Patch(String),
    /// Delete it and create it again: a binding's role cannot be changed, and a deletion cannot be undone.
    Anew,
}

// === impl Binding ===

impl Binding {
    /// The binding that makes `O=system:masters` an administrator of this virtual cluster, without rights elsewhere on
    /// the host.
    pub(super) fn cluster_admin(cluster: &ClusterName) -> Self {
        Self {
            name: CLUSTER_ADMIN.to_owned(),
            version: 0,
            subjects: Subjects::of(&json!([{"apiGroup": RBAC, "kind": "Group", "name": masters(cluster)}])),
            role_ref: json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": CLUSTER_ADMIN}),
        }
    }

    /// The ClusterRoleBinding that a RoleBinding in a root namespace represents. `None` if its name has our prefix or
    /// it refers to a Role, because no client can have created it as a ClusterRoleBinding.
    pub(super) fn of(found: &Found) -> Option<Self> {
        let name = &found.metadata.name;
        let is_clusters = !name.starts_with("atoll:") && found.role_ref["kind"] == "ClusterRole";
        is_clusters.then(|| Self {
            name: name.clone(),
            version: found.version(),
            subjects: found.subjects.clone(),
            role_ref: found.role_ref.clone(),
        })
    }

    /// The RoleBinding with this metadata, as JSON.
    pub(super) fn object(&self, metadata: Value) -> String {
        text(metadata, &self.subjects, &self.role_ref)
    }

    /// The RoleBinding in the root namespace, for a binding that the agent creates.
    pub(super) fn protected(&self, cluster: &ClusterName) -> Wanted {
        Wanted { cluster: Some(cluster.clone()), ..self.wanted(self.name.clone(), PROTECTED_LABEL, None) }
    }

    /// Its mirror: the RoleBinding in each namespace.
    pub(super) fn mirror(&self) -> Wanted {
        self.wanted(format!("{MIRROR_PREFIX}{}", self.name), MIRROR_LABEL, Some(MIRROR_FINALIZER))
    }

    fn wanted(&self, name: String, label: &'static str, finalizer: Option<&'static str>) -> Wanted {
        let (subjects, role_ref) = (self.subjects.clone(), self.role_ref.clone());
        Wanted { name, label, cluster: None, finalizer, subjects, role_ref }
    }
}

// === impl Wanted ===

impl Wanted {
    /// A binding in a root namespace that clients do not see.
    pub(super) fn internal(name: &str, subjects: &Value, role_ref: Value) -> Self {
        let subjects = Subjects::of(subjects);
        Self { name: name.to_owned(), label: INTERNAL_LABEL, cluster: None, finalizer: None, subjects, role_ref }
    }

    /// The object to create, as JSON.
    pub(super) fn object(&self, host: &HostNamespace) -> String {
        let mut metadata = json!({"name": self.name, "namespace": host.as_str(), "labels": self.labels()});
        if let Some(finalizer) = self.finalizer {
            metadata["finalizers"] = json!([finalizer]);
        }
        text(metadata, &self.subjects, &self.role_ref)
    }

    /// The length of its content as JSON.
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.subjects.len() + self.role_ref.to_string().len()
    }

    /// The number of its subjects.
    pub(super) fn subjects(&self) -> usize {
        self.subjects.count()
    }

    /// How to repair the existing binding.
    pub(super) fn repair(&self, found: &Found) -> Repair {
        if found.is_deleted() || found.role_ref != self.role_ref {
            return Repair::Anew;
        }
        self.patch(found).map_or(Repair::Nothing, Repair::Patch)
    }

    /// The patch that corrects everything but the role; `None` if nothing is wrong. An object that is being deleted
    /// gets no finalizer, because the API server would refuse it (`ValidateObjectMetaAccessorUpdate`).
    pub(super) fn patch(&self, found: &Found) -> Option<String> {
        let finalizer = self.finalizer.filter(|_| !found.is_deleted() && !found.metadata.is_held);
        let labels = &found.metadata.labels;
        let has_labels = labels.get(self.label) == Some(SET)
            && self.cluster.as_ref().is_none_or(|cluster| labels.get(CLUSTER_LABEL) == Some(cluster.as_str()));
        if has_labels && finalizer.is_none() && found.subjects == self.subjects {
            return None;
        }
        let mut metadata = json!({"resourceVersion": found.metadata.resource_version, "labels": self.labels()});
        if let Some(finalizer) = finalizer {
            metadata["finalizers"] = json!([finalizer]);
        }
        // The role of a binding cannot be changed.
        Some(text(metadata, &self.subjects, &found.role_ref))
    }

    fn labels(&self) -> Value {
        let mut labels = json!({self.label: SET});
        if let Some(cluster) = &self.cluster {
            labels[CLUSTER_LABEL] = json!(cluster.as_str());
        }
        labels
    }

    /// Whether a binding has the wanted role. A mirror that cannot be created again may have subjects only then.
    pub(super) fn is_of_same_role(&self, found: &Found) -> bool {
        found.role_ref == self.role_ref
    }
}

/// A RoleBinding, or a strategic merge patch of one.
fn text(metadata: Value, subjects: &Subjects, role_ref: &Value) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Text<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Value,
        subjects: &'a Subjects,
        role_ref: &'a Value,
    }
    let (api_version, kind) = ("rbac.authorization.k8s.io/v1", "RoleBinding");
    let text = Text { api_version, kind, metadata, subjects, role_ref };
    serde_json::to_string(&text).expect("texts and values are JSON")
}

/// Whether an object is being deleted.
pub(super) fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a RoleBinding is a mirror: it has both the name and the label of one.
pub(super) fn is_mirror(found: &Found) -> bool {
    found.metadata.labels.get(MIRROR_LABEL) == Some(SET) && found.metadata.name.starts_with(MIRROR_PREFIX)
}

/// The patch that removes the label of mirrors from a binding that is none, because the label hides it from clients.
/// `None` if it is a mirror, or has no such label.
pub(super) fn undisguised(found: &Found) -> Option<String> {
    found.metadata.labels.get(MIRROR_LABEL).filter(|_| !is_mirror(found))?;
    let metadata = json!({"resourceVersion": found.metadata.resource_version, "labels": {MIRROR_LABEL: null}});
    Some(json!({"metadata": metadata}).to_string())
}

/// The patch that gives a binding in a root namespace the label of its virtual cluster. `None` if it has one.
pub(super) fn labelled(found: &Found, cluster: &ClusterName) -> Option<String> {
    let metadata = json!({
        "resourceVersion": found.metadata.resource_version, "labels": {CLUSTER_LABEL: cluster.as_str()},
    });
    found.metadata.labels.get(CLUSTER_LABEL).is_none().then(|| json!({"metadata": metadata}).to_string())
}

/// The patch that removes our finalizer; `None` if there is none.
pub(super) fn released(found: &Found) -> Option<String> {
    let version = &found.metadata.resource_version;
    let metadata = json!({"resourceVersion": version, "$deleteFromPrimitiveList/finalizers": [MIRROR_FINALIZER]});
    found.metadata.is_held.then(|| json!({"metadata": metadata}).to_string())
}

/// The patch that removes the subjects of a binding and our finalizer. Something else may keep the object, and RBAC
/// ignores a `deletionTimestamp`.
pub(super) fn revoked(found: &Found) -> String {
    let mut metadata = json!({"resourceVersion": found.metadata.resource_version});
    if found.is_deleted() {
        metadata["$deleteFromPrimitiveList/finalizers"] = json!([MIRROR_FINALIZER]);
    }
    json!({"metadata": metadata, "subjects": []}).to_string()
}

/// The group of a virtual cluster's administrators, on the host.
pub(super) fn masters(cluster: &ClusterName) -> String {
    format!("vc:{cluster}:system:masters")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> (Wanted, Value) {
        let mirror = Binding::cluster_admin(&ClusterName::new("vc").unwrap()).mirror();
        let mut stored: Value = serde_json::from_str(&mirror.object(&HostNamespace::new("edge-vc").unwrap())).unwrap();
        stored["metadata"]["resourceVersion"] = json!("7");
        (mirror, stored)
    }

    fn found(object: &Value) -> Found {
        Found::of(object).unwrap()
    }

    #[test]
    fn our_own_bindings_need_no_repair() {
        let (mirror, stored) = stored();
        assert_eq!(mirror.repair(&found(&stored)), Repair::Nothing);
        assert!(is_mirror(&found(&stored)));
        assert_eq!(stored["subjects"][0]["name"], "vc:vc:system:masters");
    }

    #[test]
    fn only_relevant_changes_are_undone() {
        let (mirror, stored) = stored();
        let changes: [fn(&mut Value); 5] = [
            |found| found["subjects"] = json!([]),
            |found| found["subjects"] = Value::Null,
            |found| found["metadata"]["labels"] = json!({"other": "1"}),
            |found| found["metadata"]["finalizers"] = json!(["other"]),
            |found| found["metadata"]["finalizers"] = Value::Null,
        ];
        for change in changes {
            let mut changed = stored.clone();
            change(&mut changed);
            let Repair::Patch(patch) = mirror.repair(&found(&changed)) else { panic!("{changed}") };
            let patch: Value = serde_json::from_str(&patch).unwrap();
            assert_eq!(patch["subjects"], stored["subjects"]);
            assert_eq!(patch["metadata"]["labels"], json!({"atoll.dev/mirror": "true"}));
            assert_eq!(patch["metadata"]["resourceVersion"], "7");
            let is_held = found(&changed).metadata.is_held;
            assert_eq!(patch["metadata"]["finalizers"].is_null(), is_held);
        }
    }

    #[test]
    fn an_immutable_binding_is_created_again() {
        let (mirror, stored) = stored();
        let mut other_role = stored.clone();
        other_role["roleRef"]["name"] = json!("view");
        assert_eq!(mirror.repair(&found(&other_role)), Repair::Anew);
        let mut deleted = stored;
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(mirror.repair(&found(&deleted)), Repair::Anew);
        assert_eq!(mirror.patch(&found(&deleted)), None);
    }

    #[test]
    fn a_binding_without_subjects_has_a_mirror_too() {
        let source = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}});
        let mirror = Binding::of(&found(&source)).unwrap().mirror();
        let mut stored: Value = serde_json::from_str(&mirror.object(&HostNamespace::new("edge-vc").unwrap())).unwrap();
        assert_eq!(stored["subjects"].take(), json!([]));
        assert_eq!(mirror.repair(&found(&stored)), Repair::Nothing);
    }

    #[test]
    fn bindings_that_no_client_can_create_are_not_mirrored() {
        for (name, kind) in [("atoll:probe", "ClusterRole"), ("b", "Role")] {
            let object = json!({"metadata": {"name": name}, "roleRef": {"kind": kind}});
            assert_eq!(Binding::of(&found(&object)), None);
        }
    }

    #[test]
    fn only_our_finalizer_is_removed() {
        let (_, mut stored) = stored();
        stored["metadata"]["finalizers"] = json!(["other", MIRROR_FINALIZER]);
        let patch: Value = serde_json::from_str(&released(&found(&stored)).unwrap()).unwrap();
        assert_eq!(patch["metadata"]["$deleteFromPrimitiveList/finalizers"], json!([MIRROR_FINALIZER]));
        stored["metadata"]["finalizers"] = json!(["other"]);
        assert_eq!(released(&found(&stored)), None);
    }
}
