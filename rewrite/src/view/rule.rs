//! Rules of roles: the names of namespaces and ClusterRoles in them.

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};
use crate::program::Names;

// === impl Reader ===

impl Reader<'_> {
    pub(super) fn rule(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let names = Names::of(&cursor.strings_at("apiGroups")?, &cursor.strings_at("resources")?);
        self.members(cursor, edits, |reader, key, cursor, edits| {
            let is_mapped = matches!(names, Names::OfNamespaces | Names::OfRoles);
            if key != "resourceNames" || !is_mapped || cursor.peek()? != b'[' {
                return cursor.skip();
            }
            cursor.array(edits, |cursor, edits, _| {
                if names == Names::OfRoles {
                    reader.role(cursor, edits)?;
                } else {
                    reader.namespace(cursor, edits)?;
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
            Ok(())
        })
    }
}
