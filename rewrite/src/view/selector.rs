//! Label selectors over namespaces.

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};
use crate::name::{CLUSTER_LABEL, METADATA_NAME_LABEL};

// === impl Reader ===

impl Reader<'_> {
    /// A `metav1.LabelSelector`. Removes the requirement that [`request`](crate::request) has added, and maps names under
    /// `kubernetes.io/metadata.name`.
    pub(super) fn namespace_selector(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        cursor.object(edits, |cursor, edits, key| match &*key.decode() {
            "matchLabels" => self.match_labels(cursor, edits),
            "matchExpressions" => self.match_expressions(cursor, edits),
            _ => cursor.skip().map(|()| Fate::Keep),
        })?;
        Ok(())
    }

    fn match_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            METADATA_NAME_LABEL => reader.namespace(cursor, edits),
            _ => cursor.skip(),
        })?;
        Ok(Fate::Keep)
    }

    fn match_expressions(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
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
            self.members(cursor, edits, |reader, key, cursor, edits| {
                if key == "values" && by_name && cursor.peek()? == b'[' {
                    cursor.array(edits, |cursor, edits, _| {
                        reader.namespace(cursor, edits)?;
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
}
