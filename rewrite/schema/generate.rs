//! Makes the Rust table of places from the list of references. Shared by the example that writes the table and the test
//! that compares it; no part of the library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A field that names something.
struct Row<'a> {
    class: &'a str,
    path: &'a str,
}

/// Places of a kind, in the order of their paths, each with the name of its `Place`.
type Places = BTreeMap<String, &'static str>;

/// The places that every object has, whether its kind is known or not.
const EVERY_OBJECT: [(&str, &str); 3] = [
    ("metadata.namespace", "OwnNamespace"),
    ("metadata.ownerReferences[]", "Reference"),
    // A convention (KEP-1623) that most kinds follow, and no place for anything else.
    ("status.conditions[].message", "Message"),
];

/// Places that the list cannot express, because they depend on the kind.
fn additions(group: &str, kind: &str) -> &'static [(&'static str, &'static str)] {
    match (group, kind) {
        ("", "Binding") => &[("target", "BindingTarget")],
        ("authentication.k8s.io", "TokenRequest") => &[("spec.boundObjectRef", "BoundObject")],
        ("", "Namespace") => &[
            ("metadata", "NamespaceMeta"),
            ("metadata.name", "OwnName"),
            ("metadata.generateName", "OwnGenerateName"),
            ("metadata.uid", "OwnUid"),
            ("metadata.labels", "OwnLabels"),
            ("metadata.annotations", "OwnAnnotations"),
            ("status.conditions", "NamespaceConditions"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", "OwnedNamespaceKeys"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", "OwnedNamespaceKeys"),
        ],
        ("rbac.authorization.k8s.io", "ClusterRole") => &[
            ("metadata", "RoleMeta"),
            ("metadata.name", "RoleName"),
            ("metadata.labels", "RoleLabels"),
            ("metadata.annotations", "RoleAnnotations"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", "OwnedRoleLabels"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", "OwnedRoleAnnotations"),
            ("rules", "Rules"),
            ("aggregationRule", "AggregationRule"),
        ],
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => &[
            ("kind", "BindingKind"),
            ("roleRef", "RoleRef"),
            ("metadata.namespace", "NoNamespace"),
            ("metadata", "BindingMeta"),
            ("metadata.labels", "BindingLabels"),
            ("metadata.annotations", "HiddenKeys"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", "OwnedKeys"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", "OwnedKeys"),
        ],
        ("rbac.authorization.k8s.io", "RoleBinding") => &[("roleRef", "RoleRef")],
        ("", "Secret") => {
            &[("type", "SecretType"), ("data.namespace", "SecretNamespace"), (r"data.ca\.crt", "SecretCertificate")]
        }
        ("authorization.k8s.io", "SelfSubjectAccessReview" | "SubjectAccessReview") => {
            &[("metadata.managedFields[].fieldsV1.f:spec.f:resourceAttributes.f:namespace", "OwnedAskedNamespace")]
        }
        ("authorization.k8s.io", "SelfSubjectRulesReview") => &[
            ("spec.namespace", "ReviewNamespace"),
            ("status.evaluationError", "Message"),
            ("status.resourceRules[]", "ShownRule"),
        ],
        ("", "PersistentVolume") => &[("spec.claimRef", "Claim")],
        ("storage.k8s.io", "VolumeAttachment") | ("resource.k8s.io", "ResourceSlice") => &[("spec.nodeName", "OfNode")],
        ("networking.k8s.io", "IPAddress") => &[("spec.parentRef", "ParentReference")],
        ("flowcontrol.apiserver.k8s.io", "FlowSchema" | "PriorityLevelConfiguration") => {
            &[(r"metadata.annotations.apf\.kubernetes\.io/autoupdate-spec", "AutoupdateSpec")]
        }
        // metrics-server copies the labels of the node.
        ("metrics.k8s.io", "NodeMetrics") => &[("metadata.name", "OfNode"), ("metadata.labels", "HiddenKeys")],
        ("storage.k8s.io", "CSINode") => &[("metadata.name", "OfNode")],
        ("", "Service") => &[
            ("metadata.name", "ProjectedName"),
            ("metadata.annotations", "ServiceAnnotations"),
            ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", "OwnedKeys"),
            ("spec.ports[]", "ServicePort"),
            ("spec.healthCheckNodePort", "HealthCheckNodePort"),
        ],
        ("", "Node") => {
            &[("metadata.labels", "HiddenKeys"), ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", "OwnedKeys")]
        }
        ("", "Endpoints") | ("coordination.k8s.io", "Lease") | ("discovery.k8s.io", "EndpointSlice") => {
            &[("metadata.name", "ProjectedName")]
        }
        ("", "Event") => &[("involvedObject", "EventObject")],
        ("events.k8s.io", "Event") => &[("regarding", "EventObject")],
        ("", "ConfigMap") => &[("metadata.name", "ConfigMapName"), (r"data.ca\.crt", "ConfigMapCertificate")],
        _ => &[],
    }
}

/// The kinds whose template a `ControllerRevision` holds are alike in what matters here (`getPatch` in the controllers
/// of `DaemonSet` and `StatefulSet`).
const REVISED_KIND: (&str, &str) = ("apps", "DaemonSet");

/// The contents of `src/schema/generated.rs`.
pub(super) fn generate(references: &str) -> String {
    let mut kinds: BTreeMap<(&str, &str), BTreeMap<&str, Vec<Row<'_>>>> = BTreeMap::new();
    for line in references.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('\t').collect();
        let [group, version, kind, class, path] = fields[..] else { panic!("not five fields: {line}") };
        let versions = kinds.entry((group, kind)).or_default();
        versions.entry(version).or_default().push(Row { class, path });
    }

    let revised = places(kinds[&REVISED_KIND].values().next().expect("a kind has a version"));
    let mut tables: Vec<Places> = Vec::new();
    let mut entries = String::new();
    for ((group, kind), versions) in &kinds {
        let mut by_places: BTreeMap<Places, Vec<&str>> = BTreeMap::new();
        for (version, rows) in versions {
            let mut places = places(rows);
            if *kind == "ControllerRevision" {
                let template = revised.iter().filter(|(path, _)| path.starts_with("spec."));
                places.extend(template.map(|(path, place)| (format!("data.{path}"), *place)));
                places.insert("data".to_owned(), "Revision");
                // The namespace of the pods (`updateIdentity` in pkg/controller/statefulset/stateful_set_utils.go).
                places.insert("data.metadata.namespace".to_owned(), "Namespace");
            }
            places.extend(additions(group, kind).iter().map(|(path, place)| ((*path).to_owned(), *place)));
            by_places.entry(places).or_default().push(version);
        }
        for (places, versions) in by_places {
            let number = tables.iter().position(|table| *table == places).unwrap_or_else(|| {
                tables.push(places);
                tables.len() - 1
            });
            let resource = resource(kind);
            writeln!(
                entries,
                "    Row {{ group: {group:?}, versions: &{versions:?}, kind: {kind:?}, resource: {resource:?}, places: P{number} }},"
            )
            .expect("writing to a string");
        }
    }

    let mut out = String::from(
        "//! The positions of names, by kind. Generated from `schema/kubernetes-1.36-references.tsv` by\n\
         //! `cargo run -p rewrite --example generate-schema`; not to be edited.\n\n\
         use super::row::Row;\n\
         use crate::program::Place;\n\n\
         /// The kinds of Kubernetes, by group and kind.\n\
         pub(super) static KINDS: &[Row] = &[\n",
    );
    out.push_str(&entries);
    out.push_str("];\n");
    for (number, places) in tables.iter().enumerate() {
        write!(out, "\nconst P{number}: &[(&str, Place)] = &[\n").expect("writing to a string");
        for (path, place) in places {
            writeln!(out, "    ({path:?}, Place::{place}),").expect("writing to a string");
        }
        out.push_str("];\n");
    }
    out
}

fn places(rows: &[Row<'_>]) -> Places {
    let namespaced: BTreeSet<_> =
        rows.iter().filter(|row| row.class == "NS").filter_map(|row| row.path.strip_suffix(".namespace")).collect();
    let mut places: Places = EVERY_OBJECT.into_iter().map(|(path, place)| (path.to_owned(), place)).collect();
    for row in rows {
        let holder = row.path.strip_suffix(".name").or_else(|| row.path.strip_suffix(".namespace"));
        let (path, place) = match (row.class, holder) {
            // In `EVERY_OBJECT`, or handled by kind.
            (_, Some("metadata")) | ("RAW" | "ROLESEL", _) => continue,
            ("NS", Some(holder)) if is_reference(rows, holder) => continue,
            ("NS", _) => (row.path, "Namespace"),
            ("ID", Some(holder)) if namespaced.contains(holder) => (holder, "Subject"),
            ("ID", _) if row.path.ends_with("[]") => (row.path, "IdentityElement"),
            ("ID", _) => (row.path, "Identity"),
            ("CS?:ref", Some(holder)) if holder.ends_with("resourceAttributes") => (holder, "ResourceAttributes"),
            ("CS?:ref", Some(holder)) => (holder, "Reference"),
            ("CS?:names", _) => (row.path.trim_end_matches(".resourceNames[]"), "Rule"),
            ("TEXT", _) => (row.path, "Message"),
            ("NSSEL", _) => (row.path, "NamespaceSelector"),
            ("NODESEL", _) => (row.path.trim_end_matches(".nodeSelector{}"), "PodSpec"),
            _ => panic!("no rule for {} {}", row.class, row.path),
        };
        places.insert(path.to_owned(), place);
    }
    places
}

/// Whether the object at `holder` is handled as a whole.
fn is_reference(rows: &[Row<'_>], holder: &str) -> bool {
    rows.iter()
        .filter(|row| matches!(row.class, "CS?:ref" | "ID"))
        .any(|row| row.path.strip_suffix(".name") == Some(holder))
}

/// The resource of a kind, as Kubernetes forms it (`UnsafeGuessKindToResource` in apimachinery's restmapper.go).
fn resource(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match &*singular {
        "endpoints" => return singular,
        // `pods` and `nodes` of metrics.k8s.io.
        "podmetrics" | "nodemetrics" => return singular.replace("metrics", "s"),
        _ => {}
    }
    if let Some(stem) = singular.strip_suffix('y') {
        return format!("{stem}ies");
    }
    if singular.ends_with('s') {
        return format!("{singular}es");
    }
    format!("{singular}s")
}
