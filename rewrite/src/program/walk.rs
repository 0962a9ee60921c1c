//! Following a program through a text.

use super::{Node, Place};
use crate::json::{Cursor, Edits, Fate, Fault, Text};

/// Does what a place asks for, in one direction.
pub(crate) trait Visitor {
    /// What stops the walk.
    type Error: Fault;

    /// Called in front of the value at a place; must consume exactly that value. `node` is the program from there on,
    /// for [`descend`].
    fn visit(
        &mut self,
        place: Place,
        node: &Node,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Fate, Self::Error>;

    /// Called when an object has a second member with a key of the program.
    fn duplicate(&mut self, _: &Cursor<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called when an object has a member with a key that is none of the program's at `node`.
    fn other(&mut self, _node: &Node, _key: &Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether nothing that follows matters: the rest is skipped.
    fn is_done(&self) -> bool {
        false
    }
}

/// Handles the next value, which stands at `node`.
pub(crate) fn walk<V: Visitor>(
    visitor: &mut V,
    node: &Node,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Fate, V::Error> {
    match node.place {
        Some(place) => visitor.visit(place, node, cursor, edits),
        None => descend(visitor, node, cursor, edits),
    }
}

/// Handles what is inside the next value, which stands at `node`. The recursion is as deep as the program, whatever
/// the text is.
pub(crate) fn descend<V: Visitor>(
    visitor: &mut V,
    node: &Node,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Fate, V::Error> {
    let is_map = !node.members.is_empty() || node.any.is_some();
    match (cursor.peek()?, &node.element) {
        _ if visitor.is_done() => cursor.skip()?,
        (b'{', _) if is_map => {
            let mut seen = 0_u64;
            cursor.object(edits, |cursor, edits, key| {
                if let Some((number, member)) = node.member(&key) {
                    if seen & 1 << number != 0 {
                        visitor.duplicate(cursor)?;
                    }
                    seen |= 1 << number;
                    return walk(visitor, member, cursor, edits);
                }
                if let Some(any) = &node.any {
                    return walk(visitor, any, cursor, edits);
                }
                visitor.other(node, &key)?;
                cursor.skip()?;
                Ok(Fate::Keep)
            })?;
        }
        (b'[', Some(element)) => {
            cursor.array(edits, |cursor, edits, _| walk(visitor, element, cursor, edits))?;
        }
        _ => cursor.skip()?,
    }
    Ok(Fate::Keep)
}
