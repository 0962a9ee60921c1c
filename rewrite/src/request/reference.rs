//! References to other objects.

use super::fields::Fields;
use super::named::Named;
use super::refusal::Refusal;
use super::strings::string;
use crate::json::{Cursor, Edits};
use crate::program::Place;

/// Maps a reference, according to its place.
pub(super) fn reference(
    fields: &mut Fields<'_>,
    place: Place,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    let decider = cursor.look_up(Named::decider(place))?;
    let version = if place == Place::Reference { cursor.look_up("apiVersion")? } else { None };
    let objects = &fields.settings.names.mapping.objects;
    let named = match (decider, version) {
        (Some(kind), Some(version)) if objects.renames(&version.decode(), &kind.decode()) => Named::Renamed,
        _ => Named::at(place, |word| decider.is_some_and(|text| text.is(word))),
    };
    let once = &["apiVersion", "kind", "resource", "name", "namespace"];
    fields.members(once, cursor, edits, |fields, key, cursor, edits| match (key, named) {
        (b"namespace", _) | (b"name", Named::Namespace) => fields.namespace(cursor, edits),
        (b"name", Named::Renamed) => fields.custom_object(cursor, edits),
        (b"name", Named::Identity) => fields.identity(cursor, edits),
        (b"name", Named::Node) => {
            if let Some(name) = string(cursor)? {
                fields.report.nodes.push(name.decode().into_owned());
            }
            Ok(())
        }
        _ => Ok(cursor.skip()?),
    })
}

/// `roleRef` of a binding.
pub(super) fn role_ref(fields: &mut Fields<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    let kind = cursor.look_up("kind")?;
    let named = Named::at(Place::RoleRef, |word| kind.is_some_and(|kind| kind.is(word)));
    fields.members(&["kind", "name"], cursor, edits, |fields, key, cursor, edits| match key {
        b"name" if named == Named::Role => fields.role(cursor, edits),
        _ => Ok(cursor.skip()?),
    })
}
