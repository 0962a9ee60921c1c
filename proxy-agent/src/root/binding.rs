//! A RoleBinding as it should be, and what of an existing one differs from that.

use rewrite::{ClusterName, HostNamespace};
use serde_json::{Map, Value, json};

use super::{INTERNAL_LABEL, MIRROR_FINALIZER, MIRROR_LABEL, MIRROR_PREFIX, PROTECTED_LABEL};

/// The group of RBAC's kinds.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
/// The binding of a cluster's administrators (`cluster-admin` in plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
pub(crate) const CLUSTER_ADMIN: &str = "cluster-admin";
/// Labels of ours are flags.
const SET: &str = "true";

/// What a ClusterRoleBinding of a virtual cluster says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binding {
    pub(super) name: String,
    /// The resource version of the RoleBinding in the root namespace, from [`version`].
    pub(super) version: u64,
    subjects: Value,
    role_ref: Value,
}

/// A RoleBinding that must be somewhere, exactly like this.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) name: String,
    label: &'static str,
    finalizer: Option<&'static str>,
    subjects: Value,
    role_ref: Value,
}

/// How an existing RoleBinding becomes the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Repair {
    /// It is that.
    Nothing,
    /// By an update to this.
    Update(Value),
    /// Not at all: what a binding refers to cannot be changed, and what is being deleted cannot be kept.
    Anew,
}

// === impl Binding ===

impl Binding {
    /// What makes `O=system:masters` an administrator of this virtual cluster and nobody on the host.
    pub(super) fn cluster_admin(cluster: &ClusterName) -> Self {
        Self {
            name: CLUSTER_ADMIN.to_owned(),
            version: 0,
            subjects: json!([{"apiGroup": RBAC, "kind": "Group", "name": masters(cluster)}]),
            role_ref: json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": CLUSTER_ADMIN}),
        }
    }

    /// What a RoleBinding in a root namespace stands for. `None` if it stands for no ClusterRoleBinding: no client can
    /// have made one with our prefix, or one that refers to a Role.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let name = object["metadata"]["name"].as_str()?;
        let role_ref = &object["roleRef"];
        let is_clusters = !name.starts_with("atoll:") && role_ref["kind"] == "ClusterRole";
        is_clusters.then(|| Self {
            name: name.to_owned(),
            version: version(object),
            subjects: object["subjects"].clone(),
            role_ref: role_ref.clone(),
        })
    }

    /// The RoleBinding in the root namespace, for those that are ours to make.
    pub(super) fn protected(&self) -> Wanted {
        self.wanted(self.name.clone(), PROTECTED_LABEL, None)
    }

    /// The RoleBinding in each namespace.
    pub(super) fn mirror(&self) -> Wanted {
        self.wanted(format!("{MIRROR_PREFIX}{}", self.name), MIRROR_LABEL, Some(MIRROR_FINALIZER))
    }

    fn wanted(&self, name: String, label: &'static str, finalizer: Option<&'static str>) -> Wanted {
        Wanted { name, label, finalizer, subjects: self.subjects.clone(), role_ref: self.role_ref.clone() }
    }
}

// === impl Wanted ===

impl Wanted {
    /// One in a root namespace that no client sees.
    pub(super) fn internal(name: &str, subjects: Value, role_ref: Value) -> Self {
        Self { name: name.to_owned(), label: INTERNAL_LABEL, finalizer: None, subjects, role_ref }
    }

    /// To create it.
    pub(super) fn object(&self, host: &HostNamespace) -> Value {
        let mut object = json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": {"name": self.name, "namespace": host.as_str(), "labels": {self.label: SET}},
            "subjects": self.subjects,
            "roleRef": self.role_ref,
        });
        if let Some(finalizer) = self.finalizer {
            object["metadata"]["finalizers"] = json!([finalizer]);
        }
        object
    }

    /// The length of its content as JSON.
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.subjects.to_string().len() + self.role_ref.to_string().len()
    }

    /// What to do with the one that is there.
    pub(super) fn repair(&self, found: &Value) -> Repair {
        if is_deleted(found) || found["roleRef"] != self.role_ref {
            return Repair::Anew;
        }
        self.edit(found).map_or(Repair::Nothing, Repair::Update)
    }

    /// The update that makes everything right that an update can; `None` if nothing is wrong. What is being deleted
    /// gets no finalizer, which the API server would refuse (`ValidateObjectMetaAccessorUpdate`).
    pub(super) fn edit(&self, found: &Value) -> Option<Value> {
        let mut edited = found.clone();
        let metadata = object(&mut edited["metadata"]);
        object(metadata.entry("labels").or_insert(Value::Null)).insert(self.label.to_owned(), SET.into());
        if let Some(finalizer) = self.finalizer.filter(|_| !is_deleted(found)) {
            let finalizers = metadata.entry("finalizers").or_insert(Value::Null);
            match finalizers.as_array_mut() {
                Some(finalizers) if finalizers.iter().any(|one| one == finalizer) => {}
                Some(finalizers) => finalizers.push(finalizer.into()),
                None => *finalizers = json!([finalizer]),
            }
        }
        edited["subjects"] = self.subjects.clone();
        // An object without subjects does not have the field.
        let is_same = edited == *found
            || (self.subjects.is_null() && found.get("subjects").is_none() && {
                object(&mut edited).remove("subjects");
                edited == *found
            });
        (!is_same).then_some(edited)
    }
}

/// The resource version of an object. One that is not a number is older than all others.
pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Whether an object is being deleted.
pub(super) fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a RoleBinding is a mirror: only those that have both its name and its label.
pub(super) fn is_mirror(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["labels"][MIRROR_LABEL] == SET
        && metadata["name"].as_str().is_some_and(|name| name.starts_with(MIRROR_PREFIX))
}

/// A binding of somebody's without the label of mirrors, which would keep it out of what clients list; `None` if it is a
/// mirror, or has no such label.
pub(super) fn undisguised(found: &Value) -> Option<Value> {
    if is_mirror(found) {
        return None;
    }
    let mut shown = found.clone();
    shown["metadata"]["labels"].as_object_mut()?.remove(MIRROR_LABEL)?;
    Some(shown)
}

/// The object without our finalizer; `None` if it has none.
pub(super) fn released(found: &Value) -> Option<Value> {
    let finalizers = found["metadata"]["finalizers"].as_array()?;
    let others: Vec<_> = finalizers.iter().filter(|one| *one != MIRROR_FINALIZER).cloned().collect();
    if others.len() == finalizers.len() {
        return None;
    }
    let mut released = found.clone();
    released["metadata"]["finalizers"] = Value::Array(others);
    Some(released)
}

/// The group of a virtual cluster's administrators, on the host.
pub(super) fn masters(cluster: &ClusterName) -> String {
    format!("vc:{cluster}:system:masters")
}

/// The object that `value` is, or an empty one in its place.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made one above")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> (Wanted, Value) {
        let mirror = Binding::cluster_admin(&ClusterName::new("vc").unwrap()).mirror();
        let mut stored = mirror.object(&HostNamespace::new("edge-vc").unwrap());
        stored["metadata"]["resourceVersion"] = json!("7");
        stored["metadata"]["annotations"] = json!({"someone": "else's"});
        (mirror, stored)
    }

    #[test]
    fn what_we_made_needs_no_repair() {
        let (mirror, stored) = stored();
        assert_eq!(mirror.repair(&stored), Repair::Nothing);
        assert!(is_mirror(&stored));
        assert_eq!(stored["subjects"][0]["name"], "vc:vc:system:masters");
    }

    #[test]
    fn every_change_that_matters_is_undone_and_no_other() {
        let (mirror, stored) = stored();
        let changes: [fn(&mut Value); 6] = [
            |found| found["subjects"] = json!([]),
            |found| found["subjects"] = Value::Null,
            |found| found["metadata"]["labels"] = json!({"other": "1"}),
            |found| found["metadata"]["labels"] = Value::Null,
            |found| found["metadata"]["finalizers"] = json!(["other"]),
            |found| found["metadata"]["finalizers"] = Value::Null,
        ];
        for change in changes {
            let mut found = stored.clone();
            change(&mut found);
            let Repair::Update(repaired) = mirror.repair(&found) else { panic!("{found}") };
            assert_eq!(mirror.repair(&repaired), Repair::Nothing);
            assert_eq!(repaired["metadata"]["annotations"], stored["metadata"]["annotations"]);
            assert_eq!(repaired["metadata"]["resourceVersion"], "7");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_made_anew() {
        let (mirror, stored) = stored();
        let mut other_role = stored.clone();
        other_role["roleRef"]["name"] = json!("view");
        assert_eq!(mirror.repair(&other_role), Repair::Anew);
        let mut deleted = stored;
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(mirror.repair(&deleted), Repair::Anew);
        assert_eq!(mirror.edit(&deleted), None);
    }

    #[test]
    fn a_binding_without_subjects_has_a_mirror_too() {
        let source = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}});
        let mirror = Binding::of(&source).unwrap().mirror();
        let mut stored = mirror.object(&HostNamespace::new("edge-vc").unwrap());
        object(&mut stored).remove("subjects");
        assert_eq!(mirror.repair(&stored), Repair::Nothing);
    }

    #[test]
    fn bindings_that_no_client_can_make_are_not_mirrored() {
        for (name, kind) in [("atoll:probe", "ClusterRole"), ("b", "Role")] {
            assert_eq!(Binding::of(&json!({"metadata": {"name": name}, "roleRef": {"kind": kind}})), None);
        }
    }

    #[test]
    fn only_our_finalizer_goes() {
        let (_, mut stored) = stored();
        stored["metadata"]["finalizers"] = json!(["other", MIRROR_FINALIZER]);
        let released = released(&stored).unwrap();
        assert_eq!(released["metadata"]["finalizers"], json!(["other"]));
        assert_eq!(super::released(&released), None);
    }
}
