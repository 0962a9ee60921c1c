//! References to other objects.

use super::names::Names;
use crate::json::{Cursor, Edits, Malformed};

/// `kind`, `name` and `namespace`, as in an owner reference or the object of an Event.
pub(super) fn reference(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    let kind = cursor.look_up("kind")?;
    if let (Some(kind), Some(version)) = (kind, cursor.look_up("apiVersion")?)
        && names.mapping.objects.renames(&version.decode(), &kind.decode())
    {
        return cursor.members(edits, |key, cursor, edits| match key {
            b"name" => names.custom_object(cursor, edits).map(drop),
            _ => cursor.skip(),
        });
    }
    named(names, kind.is_some_and(|kind| kind.is("Namespace")), cursor, edits)
}

/// A subject of a role binding (`rbac/v1` types.go): a service account has a namespace, the others have a name that is mapped.
pub(super) fn subject(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    let kind = cursor.look_up("kind")?;
    let is_identity = kind.is_some_and(|kind| kind.is("User") || kind.is("Group"));
    cursor.members(edits, |key, cursor, edits| match key {
        b"namespace" => names.namespace(cursor, edits),
        b"name" if is_identity => names.identity(cursor, edits).map(drop),
        _ => cursor.skip(),
    })
}

/// `roleRef` of a binding.
pub(super) fn role_ref(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    let is_mapped = cursor.look_up("kind")?.is_some_and(|kind| kind.is("ClusterRole"));
    cursor.members(edits, |key, cursor, edits| match key {
        b"name" if is_mapped => names.role(cursor, edits).map(drop),
        _ => cursor.skip(),
    })
}

/// `namespace`, and `name` if it is that of a namespace.
pub(super) fn named(
    names: Names<'_>,
    to_namespace: bool,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Malformed> {
    cursor.members(edits, |key, cursor, edits| match key {
        b"namespace" => names.namespace(cursor, edits),
        b"name" if to_namespace => names.namespace(cursor, edits),
        _ => cursor.skip(),
    })
}
