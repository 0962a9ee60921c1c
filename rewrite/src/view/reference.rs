//! References to other objects.

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};

/// Where the control plane's own service accounts are (`NamespaceSystem` in apimachinery's meta/v1).
const SYSTEM_NAMESPACE: &str = "kube-system";

// === impl Reader ===

impl Reader<'_> {
    /// `kind`, `name` and `namespace`, as in an owner reference or the object of an Event.
    pub(super) fn reference(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let to_namespace = cursor.look_up("kind")?.is_some_and(|kind| kind.is("Namespace"));
        self.named(to_namespace, cursor, edits)
    }

    /// A subject of a role binding (`rbac/v1` types.go): a service account has a namespace, the others have a name that
    /// is mapped.
    pub(super) fn subject(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let kind = cursor.look_up("kind")?;
        let is_identity = kind.is_some_and(|kind| kind.is("User") || kind.is("Group"));
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            "namespace" => reader.namespace(cursor, edits),
            "name" if is_identity => reader.identity(cursor, edits).map(drop),
            _ => cursor.skip(),
        })
    }

    /// The same of a binding that the host has by itself. Who is somebody in every cluster reads as in every cluster:
    /// components of the control plane, the groups that an API server gives, and controllers' accounts.
    pub(super) fn shared_subject(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let name = cursor.look_up("name")?.map(|name| name.decode()).unwrap_or_default();
        let namespace = cursor.look_up("namespace")?;
        // The accounts of one namespace are not in every cluster.
        let of_namespace = ["system:serviceaccount:", "system:serviceaccounts:"];
        let is_standard = if let Some(namespace) = namespace {
            namespace.is(SYSTEM_NAMESPACE)
        } else {
            name.starts_with("system:") && !of_namespace.iter().any(|prefix| name.starts_with(prefix))
        };
        if is_standard { cursor.skip() } else { self.subject(cursor, edits) }
    }

    pub(super) fn named(
        &mut self,
        to_namespace: bool,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Malformed> {
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            "namespace" => reader.namespace(cursor, edits),
            "name" if to_namespace => reader.namespace(cursor, edits),
            _ => cursor.skip(),
        })
    }

    /// Visits the members of the next value if it is an object, and passes it otherwise.
    pub(super) fn members<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &str, &mut Cursor<'a>, &mut Edits) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        cursor.object(edits, |cursor, edits, key| {
            visit(self, &key.decode(), cursor, edits)?;
            Ok::<_, Malformed>(Fate::Keep)
        })?;
        Ok(())
    }
}
