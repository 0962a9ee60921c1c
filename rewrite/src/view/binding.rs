//! ClusterRoleBindings, which are RoleBindings of the host in the root namespace of the virtual cluster.

use bytes::Bytes;

use super::namespace::Key;
use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};
use crate::name::HIDDEN_PREFIX;

/// The virtual cluster's name of a kind of the host. `None` if it is the same.
pub(super) fn shown_kind(host: &[u8]) -> Option<&'static str> {
    match host {
        b"RoleBinding" => Some("ClusterRoleBinding"),
        b"RoleBindingList" => Some("ClusterRoleBindingList"),
        _ => None,
    }
}

/// `kind` of a binding, or of a list of them.
pub(super) fn kind(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    if cursor.peek()? != b'"' {
        return cursor.skip();
    }
    let text = cursor.string()?;
    if let Some(shown) = shown_kind(text.raw) {
        edits.replace(text.range(), Bytes::from_static(shown.as_bytes()));
    }
    Ok(())
}

// === impl Reader ===

impl Reader<'_> {
    /// `metadata.labels` or `metadata.annotations`, without those that Atoll has added.
    pub(super) fn hidden_keys(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        let shown = |key: &str| if key.starts_with(HIDDEN_PREFIX) { Key::Hidden } else { Key::Itself };
        self.keys_shown(cursor, edits, shown, |_| false)
    }
}
