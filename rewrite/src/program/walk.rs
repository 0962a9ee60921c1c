//! Applies a program to a text.

use super::node::Node;
use super::place::Place;
use crate::json::{Cursor, Edits, Fault, Outcome, Text};

/// Handles places, in one direction.
pub(crate) trait Visitor {
    /// An error that stops the walk.
    type Error: Fault;

    /// Called before the value at a place. Must consume exactly that value. `node` is the program from there on, for
    /// [`descend`].
    fn visit(
        &mut self,
        place: Place,
        node: &Node,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Self::Error>;

    /// Called when an object has a second member with a key of the program.
    fn duplicate(&mut self, _: &Cursor<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called if an object has a member whose key the program does not have at `node`.
    fn other(&mut self, _node: &Node, _key: &Text<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether the rest does not matter and is skipped.
    fn is_done(&self) -> bool {
        false
    }
}

/// Handles the next value, which is at `node`.
pub(crate) fn walk<V: Visitor>(
    visitor: &mut V,
    node: &Node,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Outcome, V::Error> {
    if visitor.is_done() {
        cursor.skip()?;
        return Ok(Outcome::Keep);
    }
    match node.place {
        Some(place) => visitor.visit(place, node, cursor, edits),
        None => descend(visitor, node, cursor, edits),
    }
}

/// Handles the content of the next value, which is at `node`. The depth of the recursion is that of the program, for any text.
pub(crate) fn descend<V: Visitor>(
    visitor: &mut V,
    node: &Node,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Outcome, V::Error> {
    let is_map = !node.members.is_empty() || node.any.is_some();
    match (cursor.peek()?, &node.element) {
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
                Ok(Outcome::Keep)
            })?;
        }
        (b'[', Some(element)) => {
            cursor.array(edits, |cursor, edits, _| walk(visitor, element, cursor, edits))?;
        }
        _ => cursor.skip()?,
    }
    Ok(Outcome::Keep)
}
