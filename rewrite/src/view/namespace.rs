//! Namespace objects: the labels that assign them to a virtual cluster are hidden.

use super::object::{Reader, unquoted};
use crate::json::{Cursor, Edits, Fate, Malformed, Text};
use crate::name::{HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL};
use crate::parked::{parked_annotation, unparked_annotation};
use crate::pod_security;

/// In managed fields, the entry for the map itself (`MakePathElement` and `Set` of structured-merge-diff). No label or
/// annotation can have this key.
pub(super) const ITSELF: &str = ".";

/// How a key of a map is shown.
pub(super) enum Key {
    /// Hidden, with its value.
    Hidden,
    /// Unchanged.
    Itself,
    /// Under another key, which was parked.
    As(String),
}

// === impl Key ===

impl Key {
    /// How a label of a Namespace is shown; `enforces` says whether the agent enforces a level of Pod Security.
    pub(super) fn of_label(key: &str, enforces: bool) -> Self {
        if key.starts_with(HIDDEN_PREFIX) || enforces && pod_security::is_enforced(key) {
            return Self::Hidden;
        }
        Self::unparked(pod_security::shown_key(key).filter(|_| enforces))
    }

    /// How an annotation of a Namespace is shown. What the operator of the host selects by is not the client's.
    pub(super) fn of_annotation(key: &str) -> Self {
        if key.starts_with(HIDDEN_PREFIX) || parked_annotation(key).is_some() {
            return Self::Hidden;
        }
        Self::unparked(unparked_annotation(key))
    }

    fn unparked(key: Option<&str>) -> Self {
        key.map_or(Self::Itself, |key| Self::As(key.to_owned()))
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// `metadata.labels`.
    pub(super) fn own_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        let enforces = self.view.enforces_pod_security;
        self.keys_shown(cursor, edits, |key| Key::of_label(key, enforces), |key| key.is(METADATA_NAME_LABEL))
    }

    /// `metadata.annotations`.
    pub(super) fn own_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.keys_shown(cursor, edits, Key::of_annotation, |_| false)
    }

    /// `f:labels` or `f:annotations` of a manager of a Namespace.
    pub(super) fn owned_namespace_keys(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Fate, Malformed> {
        let enforces = self.view.enforces_pod_security;
        // No key is parked both as a label and as an annotation.
        self.owned_keys(cursor, edits, |key| match (Key::of_label(key, enforces), Key::of_annotation(key)) {
            (Key::Hidden, _) | (_, Key::Hidden) => Key::Hidden,
            (Key::As(shown), _) | (_, Key::As(shown)) => Key::As(format!("f:{shown}")),
            _ => Key::Itself,
        })
    }

    /// `f:labels` or `f:annotations` of a manager. `shown` decides for keys that are not Atoll's own.
    pub(super) fn owned_keys(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        shown: impl Fn(&str) -> Key,
    ) -> Result<Fate, Malformed> {
        let shown = |key: &str| match key.strip_prefix("f:") {
            Some(key) if key.starts_with(HIDDEN_PREFIX) => Key::Hidden,
            Some(key) => shown(key),
            None => Key::Itself,
        };
        self.keys_shown(cursor, edits, shown, |_| false)
    }

    /// Shows the keys of a map, and removes the map if only the entry for itself is left (`.` in managed fields).
    pub(super) fn keys_shown(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        shown: impl Fn(&str) -> Key,
        names_it: impl Fn(&Text<'_>) -> bool,
    ) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(Fate::Keep);
        }
        let mut itself = 0;
        let extent = cursor.object(edits, |cursor, edits, key| {
            itself += usize::from(key.is(ITSELF));
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
            Ok::<_, Malformed>(match shown(&key.decode()) {
                Key::Hidden => Fate::Remove,
                Key::Itself => Fate::Keep,
                Key::As(shown) => {
                    edits.replace(key.range(), unquoted(&shown));
                    Fate::Keep
                }
            })
        })?;
        Ok(if extent.removed > 0 && extent.kept == itself { Fate::Remove } else { Fate::Keep })
    }
}
