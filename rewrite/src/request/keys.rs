//! The keys of labels and annotations, and of managed fields about them.

use super::refusal::{Reason, Refusal};
use super::strings::quotes_of;
use crate::json::{Cursor, Edits, Fault as _, Outcome, Step, Text, quoted};
use crate::name::is_hidden;

/// `f:labels` or `f:annotations` in managed fields, as a client sends them back.
pub(super) fn owned_keys(
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
    parked: impl Fn(&str) -> Option<String>,
) -> Result<(), Refusal> {
    if cursor.peek()? != b'{' {
        return Ok(cursor.skip()?);
    }
    each_key(cursor, edits, |key, edits| {
        if let Some(host) = key.decode().strip_prefix("f:").and_then(&parked) {
            edits.replace(quotes_of(&key), quoted(&format!("f:{host}")).into());
        }
        Ok(())
    })
}

/// Labels or annotations. None of them may be Atoll's own.
pub(super) fn hidden_keys(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    if cursor.peek()? == b'{' { each_key(cursor, edits, |_, _| Ok(())) } else { Ok(cursor.skip()?) }
}

/// Visits the keys of a map. None of them may be Atoll's own.
pub(super) fn each_key<'a>(
    cursor: &mut Cursor<'a>,
    edits: &mut Edits,
    mut visit: impl FnMut(Text<'a>, &mut Edits) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    cursor.object(edits, |cursor, edits, key| {
        if is_hidden(&key.decode()) {
            return Err(Refusal::from(Reason::Protected).within(Step::MapKey(&key.decode())));
        }
        visit(key, edits)?;
        cursor.skip()?;
        Ok(Outcome::Keep)
    })?;
    Ok(())
}
