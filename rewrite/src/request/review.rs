//! Access reviews for the host.
//!
//! The attributes may contain namespaces that do not exist, and names that no object can have. An API server allows
//! that, so none of them is refused. The host's review has the root namespace instead, or about a name that no object
//! on the host has. The [view](crate::View::with_original_attributes) of the response restores the original text.

use super::fields::Fields;
use super::named::Named;
use super::refusal::Refusal;
use super::settings::Settings;
use super::strings::{non_empty_string, quotes_of};
use crate::json::{Cursor, Edits, quoted};
use crate::program::Place;

/// `resourceAttributes`.
pub(super) fn resource_attributes(
    fields: &mut Fields<'_>,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    if cursor.peek()? != b'{' {
        return Ok(cursor.skip()?);
    }
    let resource = cursor.look_up("resource")?;
    let named = Named::at(Place::ResourceAttributes, |word| resource.is_some_and(|resource| resource.is(word)));
    let open = cursor.at();
    let is_empty = cursor.is_empty_container();
    let mut names_one = false;
    fields.members(&["resource", "name", "namespace"], cursor, edits, |fields, key, cursor, edits| {
        match key {
            b"namespace" => {
                names_one = true;
                fields.report.about.namespace = review_namespace(fields.settings, cursor, edits)?;
            }
            b"name" if named != Named::Other => {
                let Some(text) = non_empty_string(cursor)? else { return Ok(()) };
                let name = text.decode().into_owned();
                let host = match named {
                    Named::Role => fields.settings.names.review_role(&name),
                    _ => fields.settings.names.review_name(&name)?,
                };
                edits.replace(quotes_of(&text), quoted(&host).into());
                fields.report.about.name = Some(name);
            }
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    if let (false, Some(root)) = (names_one, &fields.settings.names.root) {
        edits.insert(open + 1, format!("\"namespace\":\"{root}\"{}", if is_empty { "" } else { "," }));
    }
    Ok(())
}

/// The namespace of a review. Returns the original text.
fn review_namespace(
    settings: &Settings,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Option<String>, Refusal> {
    cursor.peek()?;
    let start = cursor.at();
    let text = non_empty_string(cursor)?;
    let host = match &text {
        Some(text) => settings.names.review_namespace(&text.bytes())?,
        None => match &settings.names.root {
            Some(root) => root.to_bytes(),
            None => return Ok(None),
        },
    };
    edits.replace(start..cursor.at(), [b"\"", &host[..], b"\""].concat().into());
    Ok(text.map(|text| text.decode().into_owned()))
}

/// The namespace of a rules review. The host refuses a review without one.
pub(super) fn rules_namespace(settings: &Settings, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    if let Some(text) = non_empty_string(cursor)? {
        edits.replace(text.range(), settings.names.review_namespace(&text.bytes())?);
    }
    Ok(())
}

/// A group in a list. Additional groups are inserted before the first, if the list `has_groups` not yet.
pub(super) fn group(
    fields: &Fields<'_>,
    has_groups: &mut bool,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    cursor.peek()?;
    if !std::mem::replace(has_groups, true) {
        let added = fields.settings.groups.iter().map(|group| quoted(group) + ",");
        let added: String = added.collect();
        if !added.is_empty() {
            edits.insert(cursor.at(), added);
        }
    }
    fields.identity(cursor, edits)
}

#[cfg(test)]
mod tests;
