//! Label selectors over namespaces.

use super::names::Names;
use crate::json::{Cursor, Edits, Fate, Malformed};
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
        _ => cursor.skip().map(|()| Fate::Keep),
    })?;
    Ok(())
}

fn match_labels(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
    cursor.members(edits, |key, cursor, edits| match key {
        METADATA_NAME_LABEL => names.namespace(cursor, edits),
        _ => cursor.skip(),
    })?;
    Ok(Fate::Keep)
}

fn match_expressions(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
    if cursor.peek()? != b'[' {
        return cursor.skip().map(|()| Fate::Keep);
    }
    let extent = cursor.array(edits, |cursor, edits, _| {
        let key = cursor.look_up("key")?;
        if key.is_some_and(|key| key.is(CLUSTER_LABEL)) {
            cursor.skip()?;
            return Ok(Fate::Remove);
        }
        let by_name = key.is_some_and(|key| key.is(METADATA_NAME_LABEL));
        cursor.members(edits, |key, cursor, edits| {
            if key == "values" && by_name && cursor.peek()? == b'[' {
                cursor.array(edits, |cursor, edits, _| {
                    names.namespace(cursor, edits)?;
                    Ok::<_, Malformed>(Fate::Keep)
                })?;
                return Ok(());
            }
            cursor.skip()
        })?;
        Ok::<_, Malformed>(Fate::Keep)
    })?;
    Ok(if extent.removed > 0 && extent.kept == 0 { Fate::Remove } else { Fate::Keep })
}
