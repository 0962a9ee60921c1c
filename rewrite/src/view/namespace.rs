//! What is special about Namespace objects: the labels that make them a virtual cluster's are hidden.

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed, Text};
use crate::name::{HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL};

// === impl Reader ===

impl Reader<'_> {
    /// `metadata.labels` or `metadata.annotations`.
    pub(super) fn own_keys(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.keys_without(cursor, edits, |key| key.starts_with(HIDDEN_PREFIX), |key| key.is(METADATA_NAME_LABEL))
    }

    /// `f:labels` or `f:annotations` of a manager.
    pub(super) fn owned_keys(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        let hidden = |key: &str| key.strip_prefix("f:").is_some_and(|key| key.starts_with(HIDDEN_PREFIX));
        self.keys_without(cursor, edits, hidden, |_| false)
    }

    /// Takes keys out of a map, and the map too if nothing is left of it.
    pub(super) fn keys_without(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        hidden: impl Fn(&str) -> bool,
        names_it: impl Fn(&Text<'_>) -> bool,
    ) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(Fate::Keep);
        }
        let extent = cursor.object(edits, |cursor, edits, key| {
            if names_it(&key) {
                self.namespace(cursor, edits)?;
                return Ok(Fate::Keep);
            }
            if key.is(LAST_APPLIED_ANNOTATION)
                && let Some(last_applied) = &mut self.last_applied
            {
                last_applied.note(cursor)?;
                return Ok(Fate::Keep);
            }
            cursor.skip()?;
            Ok::<_, Malformed>(if hidden(&key.decode()) { Fate::Remove } else { Fate::Keep })
        })?;
        Ok(if extent.removed > 0 && extent.kept == 0 { Fate::Remove } else { Fate::Keep })
    }
}
