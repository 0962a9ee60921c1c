//! Label selectors over namespaces: confined to those of the virtual cluster.
//!
//! `{}` selects all namespaces, so each selector gets an additional requirement. This is also correct for a merge patch: all
//! selectors are in lists, which a merge patch replaces as a whole (RFC 7396), except in admission policies, which virtual
//! clusters cannot write.

use super::fields::Fields;
use super::refusal::{Reason, Refusal};
use crate::json::{Cursor, Edits, Outcome};
use crate::name::{HIDDEN_PREFIX, METADATA_NAME_LABEL};

/// A `metav1.LabelSelector`. An absent or `null` one selects nothing, or the namespace of the object, and stays unchanged.
pub(super) fn namespace_selector(
    fields: &mut Fields<'_>,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    if cursor.peek()? != b'{' {
        return Ok(cursor.skip()?);
    }
    let open = cursor.at();
    let is_empty = cursor.is_empty_container();
    let mut confined = false;
    fields.members(&["matchLabels", "matchExpressions"], cursor, edits, |fields, key, cursor, edits| match key {
        b"matchLabels" => match_labels(fields, cursor, edits),
        b"matchExpressions" => {
            confined = true;
            match_expressions(fields, cursor, edits)
        }
        _ => Ok(cursor.skip()?),
    })?;
    if !confined {
        let mut member = fields.confinement.member(fields.settings.cluster());
        if is_empty {
            member.truncate(member.len() - ",".len());
        }
        edits.insert(open + 1, member);
    }
    Ok(())
}

fn match_labels(fields: &mut Fields<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    fields.members(&[METADATA_NAME_LABEL], cursor, edits, |fields, key, cursor, edits| match key {
        _ if key == METADATA_NAME_LABEL.as_bytes() => fields.namespace(cursor, edits),
        _ if key.starts_with(HIDDEN_PREFIX.as_bytes()) => Err(Reason::Protected.into()),
        _ => Ok(cursor.skip()?),
    })
}

fn match_expressions(fields: &mut Fields<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    match cursor.peek()? {
        b'[' => {}
        b'n' => {
            let start = cursor.at();
            cursor.skip()?;
            edits.replace(start..cursor.at(), fields.confinement.array(fields.settings.cluster()));
            return Ok(());
        }
        _ => return Err(Reason::WrongType { expected: "an array" }.into()),
    }
    let extent = cursor.array(edits, |cursor, edits, _| {
        let key = cursor.look_up("key")?;
        if key.is_some_and(|key| key.starts_with(HIDDEN_PREFIX)) {
            return Err(Refusal::from(Reason::Protected));
        }
        let by_name = key.is_some_and(|key| key.is(METADATA_NAME_LABEL));
        fields.members(&["key", "values"], cursor, edits, |fields, key, cursor, edits| {
            if key == b"values" && by_name && cursor.peek()? == b'[' {
                cursor.array(edits, |cursor, edits, _| {
                    fields.namespace(cursor, edits)?;
                    Ok::<_, Refusal>(Outcome::Keep)
                })?;
                return Ok(());
            }
            Ok(cursor.skip()?)
        })?;
        Ok(Outcome::Keep)
    })?;
    if extent.kept > 0 {
        edits.insert(extent.close, &b","[..]);
    }
    edits.insert(extent.close, fields.confinement.element(fields.settings.cluster()));
    Ok(())
}
