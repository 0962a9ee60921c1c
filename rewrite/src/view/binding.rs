//! ClusterRoleBindings, which are RoleBindings of the host in the root namespace of the virtual cluster.

use bytes::Bytes;

use crate::json::{Cursor, Edits, Malformed};

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
