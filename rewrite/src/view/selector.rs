//! Label selectors over namespaces.

use super::names::Names;
use crate::json::{Cursor, Edits, Malformed, Outcome};
use crate::name::{CLUSTER_LABEL, METADATA_NAME_LABEL};

/// A `metav1.LabelSelector`. Removes the requirement that [`request`](crate::request) has added, and maps names under
/// `kubernetes.io/metadata.name`.
pub(super) fn namespace_selector(
    names: Names<'_>,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Malformed> {
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    cursor.object(edits, |cursor, edits, key| match &*key.decode() {
        "matchLabels" => match_labels(names, cursor, edits),
        "matchExpressions" => match_expressions(names, cursor, edits),
        _ => cursor.skip().map(|()| Outcome::Keep),
    })?;
    Ok(())
}

fn match_labels(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
    cursor.members(edits, |key, cursor, edits| match key {
        _ if key == METADATA_NAME_LABEL.as_bytes() => names.namespace(cursor, edits),
        _ => cursor.skip(),
    })?;
    Ok(Outcome::Keep)
}

fn match_expressions(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
    if cursor.peek()? != b'[' {
        return cursor.skip().map(|()| Outcome::Keep);
    }
    let extent = cursor.array(edits, |cursor, edits, _| {
        let key = cursor.look_up("key")?;
        if key.is_some_and(|key| key.is(CLUSTER_LABEL)) {
            cursor.skip()?;
            return Ok(Outcome::Remove);
        }
        let by_name = key.is_some_and(|key| key.is(METADATA_NAME_LABEL));
        cursor.members(edits, |key, cursor, edits| {
            if key == b"values" && by_name && cursor.peek()? == b'[' {
                cursor.array(edits, |cursor, edits, _| {
                    names.namespace(cursor, edits)?;
                    Ok::<_, Malformed>(Outcome::Keep)
                })?;
                return Ok(());
            }
            cursor.skip()
        })?;
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    Ok(if extent.removed > 0 && extent.kept == 0 { Outcome::Remove } else { Outcome::Keep })
}
