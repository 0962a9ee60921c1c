//! Responses to access reviews, which contain the original attributes of the request.

use bytes::Bytes;

use super::names::Names;
use super::reference::named;
use crate::json::{Cursor, Edits, Malformed, Outcome, unquoted};
use crate::review::OriginalAttributes;

/// `resource`, `name` and `namespace`. Reverts the changes of [`request`](crate::request), if the attributes that the client
/// sent are known.
pub(super) fn resource_attributes(
    names: Names<'_>,
    about: Option<&OriginalAttributes>,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Malformed> {
    let resource = cursor.look_up("resource")?;
    let to_namespace = resource.is_some_and(|resource| resource.is("namespaces"));
    let to_role = resource.is_some_and(|resource| resource.is("clusterroles"));
    let Some(about) = about else { return named(names, to_namespace, cursor, edits) };
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    cursor.object(edits, |cursor, edits, key| {
        let original = match &*key.decode() {
            "namespace" if about.namespace.is_none() => {
                cursor.skip()?;
                return Ok(Outcome::Remove);
            }
            "namespace" => about.namespace.as_deref(),
            "name" if to_namespace || to_role => about.name.as_deref(),
            _ => None,
        };
        restore(original.map(unquoted), cursor, edits)?;
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    Ok(())
}

/// `f:namespace` of a manager that did not write it.
pub(super) fn owned_namespace(
    about: Option<&OriginalAttributes>,
    cursor: &mut Cursor<'_>,
) -> Result<Outcome, Malformed> {
    cursor.skip()?;
    let is_ours = about.is_some_and(|about| about.namespace.is_none());
    Ok(if is_ours { Outcome::Remove } else { Outcome::Keep })
}

fn restore(original: Option<Bytes>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    match original {
        Some(original) if cursor.peek()? == b'"' => edits.replace(cursor.string()?.range(), original),
        _ => cursor.skip()?,
    }
    Ok(())
}
