//! References to other objects.

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};

// === impl Reader ===

impl Reader<'_> {
    /// `kind`, `name` and `namespace`, as in an owner reference or the object of an Event.
    pub(super) fn reference(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let kind = cursor.look_up("kind")?;
        if let (Some(kind), Some(version)) = (kind, cursor.look_up("apiVersion")?)
            && self.view.mapping.objects.renames(&version.decode(), &kind.decode())
        {
            return self.members(cursor, edits, |reader, key, cursor, edits| match key {
                "name" => reader.renamed(cursor, edits).map(drop),
                _ => cursor.skip(),
            });
        }
        self.named(kind.is_some_and(|kind| kind.is("Namespace")), cursor, edits)
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

    /// Visits the members of the next value if it is an object, and skips it otherwise.
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
