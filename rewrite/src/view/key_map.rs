//! Maps of labels or annotations, and the managed fields of such a map.

use super::key::Key;
use super::last_applied::LastApplied;
use super::names::Names;
use crate::json::{Cursor, Edits, Malformed, Outcome, Text, unquoted};
use crate::name::{LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL, is_hidden};

/// In managed fields, the entry for the map itself (`MakePathElement` and `Set` of structured-merge-diff). No label or
/// annotation can have this key.
const ITSELF: &str = ".";

/// Shows the map that is the next value.
pub(super) struct KeyMap<'r, 'v> {
    pub(super) names: Names<'v>,
    /// Where the annotation of kubectl is recorded. `None` if it must stay unchanged.
    pub(super) last_applied: Option<&'r mut LastApplied>,
    pub(super) enforces_pod_security: bool,
}

// === impl KeyMap ===

impl KeyMap<'_, '_> {
    /// `metadata.labels` of a Namespace.
    pub(super) fn namespace_labels(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
        let enforces = self.enforces_pod_security;
        self.show(cursor, edits, |key| Key::of_label(key, enforces), |key| key.is(METADATA_NAME_LABEL))
    }

    /// `metadata.annotations` of a Namespace.
    pub(super) fn namespace_annotations(
        self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        self.show(cursor, edits, Key::of_annotation, |_| false)
    }

    /// `metadata.labels` or `metadata.annotations`, without those that Atoll has added.
    pub(super) fn hidden(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
        let shown = |key: &str| if is_hidden(key) { Key::Hidden } else { Key::Itself };
        self.show(cursor, edits, shown, |_| false)
    }

    /// `f:labels` or `f:annotations` of a manager of a Namespace.
    pub(super) fn owned_by_namespace(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
        let enforces = self.enforces_pod_security;
        // No key is parked both as a label and as an annotation.
        self.owned(cursor, edits, |key| match (Key::of_label(key, enforces), Key::of_annotation(key)) {
            (Key::Hidden, _) | (_, Key::Hidden) => Key::Hidden,
            (Key::As(shown), _) | (_, Key::As(shown)) => Key::As(format!("f:{shown}")),
            _ => Key::Itself,
        })
    }

    /// `f:labels` or `f:annotations` of a manager. `shown` decides for keys that are not Atoll's own.
    pub(super) fn owned(
        self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        shown: impl Fn(&str) -> Key,
    ) -> Result<Outcome, Malformed> {
        let shown = |key: &str| match key.strip_prefix("f:") {
            Some(key) if is_hidden(key) => Key::Hidden,
            Some(key) => shown(key),
            None => Key::Itself,
        };
        self.show(cursor, edits, shown, |_| false)
    }

    fn show(
        mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        shown: impl Fn(&str) -> Key,
        names_it: impl Fn(&Text<'_>) -> bool,
    ) -> Result<Outcome, Malformed> {
        visit_keys(cursor, edits, |key, cursor, edits| {
            if names_it(&key) {
                self.names.namespace(cursor, edits)?;
                return Ok(Outcome::Keep);
            }
            if key.is(LAST_APPLIED_ANNOTATION)
                && let Some(last_applied) = &mut self.last_applied
            {
                last_applied.note(cursor)?;
                return Ok(Outcome::Keep);
            }
            cursor.skip()?;
            Ok(match shown(&key.decode()) {
                Key::Hidden => Outcome::Remove,
                Key::Itself => Outcome::Keep,
                Key::As(shown) => {
                    edits.replace(key.range(), unquoted(&shown));
                    Outcome::Keep
                }
            })
        })
    }
}

/// Visits the keys of the map that is the next value, and removes the map if only the entry for itself is left (`.` in managed
/// fields).
pub(super) fn visit_keys<'a>(
    cursor: &mut Cursor<'a>,
    edits: &mut Edits,
    mut visit: impl FnMut(Text<'a>, &mut Cursor<'a>, &mut Edits) -> Result<Outcome, Malformed>,
) -> Result<Outcome, Malformed> {
    if cursor.peek()? != b'{' {
        cursor.skip()?;
        return Ok(Outcome::Keep);
    }
    let mut itself = 0;
    let extent = cursor.object(edits, |cursor, edits, key| {
        itself += usize::from(key.is(ITSELF));
        visit(key, cursor, edits)
    })?;
    Ok(if extent.removed > 0 && extent.kept == itself { Outcome::Remove } else { Outcome::Keep })
}
