//! What is special about Namespace objects: the labels that make them a virtual cluster's are hidden.

use super::object::{Reader, unquoted};
use crate::json::{Cursor, Edits, Fate, Malformed, Text};
use crate::name::{HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL};
use crate::pod_security;

/// In managed fields, the entry for the map itself (`MakePathElement` and `Set` of structured-merge-diff). No label or
/// annotation can have this key.
pub(super) const ITSELF: &str = ".";

/// How a key of a map is shown.
enum Key {
    /// Hidden, with its value.
    Hidden,
    /// As it is.
    Itself,
    /// Under another key.
    As(String),
}

// === impl Reader ===

impl Reader<'_> {
    /// `metadata.labels`.
    pub(super) fn own_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        let enforces = self.view.enforces_pod_security;
        let shown = move |key: &str| {
            if key.starts_with(HIDDEN_PREFIX) || enforces && pod_security::is_enforced(key) {
                return Key::Hidden;
            }
            match pod_security::shown_key(key).filter(|_| enforces) {
                Some(shown) => Key::As(shown.to_owned()),
                None => Key::Itself,
            }
        };
        self.keys_shown(cursor, edits, shown, |key| key.is(METADATA_NAME_LABEL))
    }

    /// `metadata.annotations`.
    pub(super) fn own_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.keys_without(cursor, edits, |key| key.starts_with(HIDDEN_PREFIX), |_| false)
    }

    /// `f:labels` or `f:annotations` of a manager.
    pub(super) fn owned_keys(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        // The agent enforces levels in Namespaces only.
        let enforces = self.view.enforces_pod_security && self.is_of_namespaces;
        let shown = move |key: &str| {
            let Some(key) = key.strip_prefix("f:") else { return Key::Itself };
            if key.starts_with(HIDDEN_PREFIX) || enforces && pod_security::is_enforced(key) {
                return Key::Hidden;
            }
            match pod_security::shown_key(key).filter(|_| enforces) {
                Some(shown) => Key::As(format!("f:{shown}")),
                None => Key::Itself,
            }
        };
        self.keys_shown(cursor, edits, shown, |_| false)
    }

    /// Takes keys out of a map, and the map too if nothing is left of it.
    pub(super) fn keys_without(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        hidden: impl Fn(&str) -> bool,
        names_it: impl Fn(&Text<'_>) -> bool,
    ) -> Result<Fate, Malformed> {
        self.keys_shown(cursor, edits, |key| if hidden(key) { Key::Hidden } else { Key::Itself }, names_it)
    }

    /// Shows the keys of a map, and removes the map if only the entry for itself is left (`.` in managed fields).
    fn keys_shown(
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
