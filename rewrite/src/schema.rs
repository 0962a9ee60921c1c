//! Where names stand in the objects of Kubernetes, by kind and by resource.
//!
//! The table is generated, from a list that is itself derived from the API's protobuf definitions (see
//! `schema/README.md`), so that a new release is compared, not remembered. What is *not* here: custom resources, of
//! which only metadata and conditions are known unless the configuration says more
//! ([`Program::add_pod_spec`]).

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::program::{Place, Program};
use crate::protobuf::{KindMessage, KindProgram, ProtoProgram};

#[rustfmt::skip]
mod generated;
#[rustfmt::skip]
mod messages;

use generated::KINDS;

/// A row of the table: one kind in the versions that are alike.
struct Row {
    /// The API group; empty for the core.
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
    /// The plural that stands in paths.
    resource: &'static str,
    places: &'static [(&'static str, Place)],
}

/// The programs of all rows, in their order.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| KINDS.iter().map(|kind| program(kind.places)).collect());

/// The program of kinds that are not in the table.
static OF_ANY: LazyLock<Program> = LazyLock::new(|| {
    program(&[
        ("metadata.namespace", Place::OwnNamespace),
        ("metadata.ownerReferences[]", Place::Reference),
        ("status.conditions[].message", Place::Message),
    ])
});

/// The program of custom objects that are in no namespace.
static OF_RENAMED: LazyLock<Program> = LazyLock::new(|| {
    program(&[
        ("metadata", Place::RenamedMeta),
        ("metadata.name", Place::RenamedName),
        ("metadata.namespace", Place::OwnNamespace),
        ("metadata.labels", Place::RenamedLabels),
        ("metadata.annotations", Place::HiddenKeys),
        ("metadata.ownerReferences[]", Place::Reference),
        ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", Place::OwnedKeys),
        ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", Place::OwnedKeys),
        ("status.conditions[].message", Place::Message),
    ])
});

/// Where kubectl and the API server keep what was applied last.
const LAST_APPLIED: &str = r"metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration";

/// Rows by (group, kind) and by (group, resource).
static BY_NAME: LazyLock<HashMap<(&str, &str), Vec<usize>>> = LazyLock::new(|| {
    let mut rows: HashMap<_, Vec<usize>> = HashMap::new();
    for (row, kind) in KINDS.iter().enumerate() {
        rows.entry((kind.group, kind.kind)).or_default().push(row);
        rows.entry((kind.group, kind.resource)).or_default().push(row);
    }
    rows
});

/// What the kinds are in protobuf, in the order of group, version and kind.
static MESSAGES: LazyLock<Vec<KindProgram>> = LazyLock::new(|| {
    let kind = |message: &'static KindMessage| {
        let (group, version, kind, _) = message;
        let compiled = KindProgram::of_requests(message, &program_for(group, version, kind));
        compiled.expect("every place has its number, as a test shows")
    };
    messages::KINDS.iter().map(kind).collect()
});

/// The program of a resource (`deployments`) or kind (`Deployment`), which cannot be confused: only one of them begins
/// with a capital. A version that is not known is taken to be like one that is; what is not known at all has the places
/// that every object has.
pub fn program_for(group: &str, version: &str, name: &str) -> Program {
    let Some(rows) = BY_NAME.get(&(group, name)) else { return OF_ANY.clone() };
    let exact = rows.iter().find(|row| KINDS[**row].versions.contains(&version));
    let row = exact.or(rows.first()).expect("a name is entered with its row");
    PROGRAMS[*row].clone().with_message(message(group, version, *row).map(|position| &messages::KINDS[position]))
}

/// The same for protobuf. Here nothing is taken to be like anything else: a field number of one version may mean
/// something else in another. Custom resources have no protobuf at all.
pub fn proto_program_for(group: &str, version: &str, name: &str) -> Option<ProtoProgram> {
    let row = BY_NAME.get(&(group, name))?.first().expect("a name is entered with its row");
    message(group, version, *row).map(|position| ProtoProgram::of(&MESSAGES[position]))
}

/// Which of the messages is the kind of a row in this very version.
fn message(group: &str, version: &str, row: usize) -> Option<usize> {
    let wanted = (group, version, KINDS[row].kind);
    messages::KINDS.binary_search_by(|&(group, version, kind, _)| (group, version, kind).cmp(&wanted)).ok()
}

/// The kind of a resource or kind of kube-apiserver's own, in any version; none of custom resources and of aggregated
/// APIs.
pub fn kind_of(group: &str, name: &str) -> Option<&'static str> {
    let row = BY_NAME.get(&(group, name))?.first().expect("a name is entered with its row");
    Some(KINDS[*row].kind)
}

/// The plural that stands in the paths of a kind of kube-apiserver's own, in any version; none of custom resources.
pub fn resource_of(group: &str, kind: &str) -> Option<&'static str> {
    let row = BY_NAME.get(&(group, kind))?.first().expect("a name is entered with its row");
    Some(KINDS[*row].resource)
}

/// The program of an object of which nothing but the metadata is known.
pub fn program_of_any() -> Program {
    OF_ANY.clone()
}

/// The program of custom objects that are in no namespace, and of what stands for their scale.
pub fn program_of_renamed() -> Program {
    OF_RENAMED.clone()
}

fn program(places: &[(&str, Place)]) -> Program {
    let mut program = Program::default();
    // What hides keys of annotations visits all of them.
    if !places.iter().any(|(path, _)| *path == "metadata.annotations") {
        program.add(LAST_APPLIED, Place::LastApplied).expect("a path");
    }
    for (path, place) in places {
        let added = match place {
            Place::PodSpec => program.add_pod_spec(path),
            _ => program.add(path, *place),
        };
        added.expect("the table holds paths, as a test shows");
    }
    program
}

#[cfg(test)]
mod tests;
