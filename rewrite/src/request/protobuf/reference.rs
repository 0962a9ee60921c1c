//! References to other objects.

use std::ops::Range;

use super::super::named::Named;
use super::super::refusal::Refusal;
use super::fields::Fields;
use super::review;
use crate::json::{Fault as _, Step};
use crate::program::Place;
use crate::protobuf::{Found, Message};

/// Maps a reference, according to its place.
pub(super) fn reference(
    fields: &mut Fields<'_, '_>,
    place: Place,
    message: &Message,
    range: &Range<usize>,
) -> Result<(), Refusal> {
    let keys = [Named::decider(place), "apiVersion", "namespace", "name"];
    let [word, version, namespace, name] = fields.each(message, range, keys)?;
    let word = fields.content(word.as_ref());
    let named = if place == Place::Reference && is_renamed(fields, version.as_ref(), word) {
        Named::Renamed
    } else {
        Named::at(place, |known| word == known.as_bytes())
    };
    for (key, found) in [("namespace", namespace), ("name", name)] {
        let Some(number) = message.number(key) else { continue };
        let mapped = match (key, named) {
            ("namespace", _) if place == Place::ResourceAttributes => {
                review::namespace(fields, found.as_ref(), number, range)
            }
            ("name", Named::Namespace) if place == Place::ResourceAttributes => {
                review::namespace_name(fields, found.as_ref())
            }
            ("namespace", _) | (_, Named::Namespace) => found.map_or(Ok(()), |found| fields.namespace(&found)),
            (_, Named::Identity) => found.map_or(Ok(()), |found| fields.identity(&found)),
            (_, Named::Node) => {
                let name = found.map(|found| fields.text_of(&found));
                fields.report.nodes.extend(name);
                Ok(())
            }
            ("name", Named::Role) if place == Place::ResourceAttributes => {
                review::role_name(fields, found.as_ref());
                Ok(())
            }
            (_, Named::Role) => found.map_or(Ok(()), |found| fields.role(&found)),
            (_, Named::Renamed) => found.map_or(Ok(()), |found| fields.custom_object(&found)),
            (_, Named::Other) => Ok(()),
        };
        mapped.map_err(|refusal| refusal.within(Step::Key(key)))?;
    }
    Ok(())
}

/// Whether a reference is to a cluster-scoped custom object.
fn is_renamed(fields: &Fields<'_, '_>, version: Option<&Found>, kind: &[u8]) -> bool {
    let version = String::from_utf8_lossy(fields.content(version));
    fields.settings.names.mapping.objects.renames(&version, &String::from_utf8_lossy(kind))
}
