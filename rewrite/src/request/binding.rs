//! ClusterRoleBindings, which are RoleBindings of the host in the root namespace of the virtual cluster.

use bytes::Bytes;

use super::refusal::{Reason, Refusal};
use super::strings::string;
use crate::json::{Cursor, Edits};

/// The kind in the virtual cluster.
pub(super) const CLUSTER_BINDING: &str = "ClusterRoleBinding";
/// The kind on the host.
pub(super) const HOST_BINDING: &str = "RoleBinding";

/// The kind of a ClusterRoleBinding, which is a RoleBinding on the host. The host would use another kind as its own.
pub(super) fn kind(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    match string(cursor)? {
        Some(kind) if kind.is(CLUSTER_BINDING) => {
            edits.replace(kind.range(), Bytes::from_static(HOST_BINDING.as_bytes()));
            Ok(())
        }
        Some(kind) if !kind.raw.is_empty() => {
            Err(Reason::WrongKind { expected: format!("a {CLUSTER_BINDING}") }.into())
        }
        _ => Ok(()),
    }
}
