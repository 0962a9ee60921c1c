//! The positions of names in the objects of Kubernetes, by kind and by resource.
//!
//! The table is generated from a list, which is derived from the protobuf definitions of the API (see `schema/README.md`), so
//! that a new release can be compared. What is *not* here: custom resources, of which only metadata and conditions are known,
//! unless the configuration adds more ([`Program::add_pod_spec`]).

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::descriptor::KindMessage;
use crate::program::{Place, Program};
use crate::protobuf::{KindProgram, ProtoProgram};

#[rustfmt::skip]
mod generated;
#[rustfmt::skip]
mod messages;
mod row;

use generated::KINDS;
use row::Row;

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

/// The program of cluster-scoped custom objects.
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

/// The annotation with the last applied configuration of kubectl and the API server.
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

/// The messages of the kind of each row, by version.
static MESSAGES_OF: LazyLock<Vec<Vec<(&str, &KindMessage)>>> = LazyLock::new(|| {
    let of_row = |row: &Row| {
        let messages = messages::KINDS.iter().filter(|(group, _, kind, _)| (*group, *kind) == (row.group, row.kind));
        messages.map(|message| (message.1, message)).collect()
    };
    KINDS.iter().map(of_row).collect()
});

/// The messages of the kinds, in the order of group, version and kind.
static MESSAGES: LazyLock<Vec<KindProgram>> = LazyLock::new(|| {
    let kind = |message: &'static KindMessage| {
        let (group, version, kind, _) = message;
        let compiled = KindProgram::of_requests(message, &program_for(group, version, kind));
        compiled.expect("every place has its number, as a test shows")
    };
    messages::KINDS.iter().map(kind).collect()
});

/// The program of a resource (`deployments`) or kind (`Deployment`). They differ, because only a kind begins with a capital. An
/// unknown version is treated like a known one. An unknown kind has the places that every object has.
pub fn program_for(group: &str, version: &str, name: &str) -> Program {
    let Some(rows) = BY_NAME.get(&(group, name)) else { return OF_ANY.clone() };
    let exact = rows.iter().find(|row| KINDS[**row].versions.contains(&version));
    let row = exact.or(rows.first()).expect("a name is entered with its row");
    let message = MESSAGES_OF[*row].iter().find(|(of, _)| *of == version).map(|(_, message)| *message);
    PROGRAMS[*row].clone().with_message(message)
}

/// The same for protobuf. Here, unknown versions have no program, because a field number can have different meanings in
/// different versions. Custom resources have no protobuf encoding.
pub fn proto_program_for(group: &str, version: &str, name: &str) -> Option<ProtoProgram> {
    let row = BY_NAME.get(&(group, name))?.first().expect("a name is entered with its row");
    message(group, version, *row).map(|position| ProtoProgram::of(&MESSAGES[position]))
}

/// The message of the kind of a row in exactly this version.
fn message(group: &str, version: &str, row: usize) -> Option<usize> {
    let wanted = (group, version, KINDS[row].kind);
    messages::KINDS.binary_search_by(|&(group, version, kind, _)| (group, version, kind).cmp(&wanted)).ok()
}

/// The kind of one of kube-apiserver's own resources or kinds, in any version. `None` for custom resources and aggregated
/// APIs.
pub fn kind_of(group: &str, name: &str) -> Option<&'static str> {
    let row = BY_NAME.get(&(group, name))?.first().expect("a name is entered with its row");
    Some(KINDS[*row].kind)
}

/// The plural in the paths of one of kube-apiserver's own kinds, in any version. `None` for custom resources.
pub fn resource_of(group: &str, kind: &str) -> Option<&'static str> {
    let row = BY_NAME.get(&(group, kind))?.first().expect("a name is entered with its row");
    Some(KINDS[*row].resource)
}

/// The program of an object of which only the metadata is known.
pub fn program_of_any() -> Program {
    OF_ANY.clone()
}

/// The program of cluster-scoped custom objects, and of their Scale objects.
pub fn program_of_renamed() -> Program {
    OF_RENAMED.clone()
}

fn program(places: &[(&str, Place)]) -> Program {
    let mut program = Program::default();
    // The code that hides annotations visits all keys.
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
