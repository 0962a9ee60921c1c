//! Rules of roles: the names of namespaces and ClusterRoles in them.

use super::names::Names;
use crate::json::{Cursor, Edits, Malformed, Outcome};
use crate::program;

pub(super) fn rule(names: Names<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
    let given = program::Names::of(&cursor.strings_at("apiGroups")?, &cursor.strings_at("resources")?);
    cursor.members(edits, |key, cursor, edits| {
        let is_mapped = matches!(given, program::Names::OfNamespaces | program::Names::OfRoles);
        if key != b"resourceNames" || !is_mapped || cursor.peek()? != b'[' {
            return cursor.skip();
        }
        cursor.array(edits, |cursor, edits, _| {
            if given == program::Names::OfRoles {
                names.role(cursor, edits)?;
            } else {
                names.namespace(cursor, edits)?;
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        Ok(())
    })
}
