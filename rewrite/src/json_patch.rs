//! JSON patches (RFC 6902), read and applied as kube-apiserver does (`gopkg.in/evanphx/json-patch.v4`).
//!
//! The library is laxer than the RFC: negative indices count from the end, `replace` creates a missing member, null is
//! treated as absent, and text before the first slash of a path is ignored. Like the library, this module parses only the
//! levels that a path leads through. Everything else stays text, so numbers keep their form, and memory does not depend
//! on the content of a value.
//!
//! The cost of a patch is bounded: the bytes that it copies, as in kube-apiserver, and its total work.

mod document;
mod error;

use bytes::Bytes;

use crate::json::{Cursor, Edits, Malformed, Outcome};
use document::Document;

pub use error::DoesNotApply;

/// The maximum number of operations in a patch (`maxJSONPatchOperations` in apiserver's `handlers/patch.go`).
const MAX_OPERATIONS: usize = 10_000;

/// A well-formed patch. It may still not apply to an object.
#[derive(Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// The body is not a patch: it is not an array of objects, has too many operations, or `op`, `path` or `from` is not a
/// string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON patch")]
pub struct NotAPatch;

#[derive(Debug, Default)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    /// A JSON text.
    value: Option<Bytes>,
}

// === impl JsonPatch ===

impl JsonPatch {
    /// Reads a patch.
    pub fn parse(body: &Bytes) -> Result<Self, NotAPatch> {
        std::str::from_utf8(body).map_err(|_| NotAPatch)?;
        let mut cursor = Cursor::new(body, 0, 0);
        let mut operations = Vec::new();
        match cursor.peek()? {
            b'[' => {
                cursor.array(&mut Edits::new(), |cursor, _, index| {
                    if index >= MAX_OPERATIONS {
                        return Err(NotAPatch);
                    }
                    operations.push(Operation::parse(body, cursor)?);
                    Ok(Outcome::Keep)
                })?;
            }
            b'n' => cursor.skip()?,
            _ => return Err(NotAPatch),
        }
        cursor.finish()?;
        Ok(Self { operations })
    }

    /// The pointers to everything that the patch reads or writes.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| [&operation.path, &operation.from]).filter_map(Option::as_deref)
    }

    /// Whether an operation takes its value from the object.
    pub fn copies(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation.op.as_deref(), Some("copy" | "move")))
    }

    /// Applies the patch to an object, which is a JSON text.
    pub fn apply(&self, object: Bytes) -> Result<Bytes, DoesNotApply> {
        let mut document = Document::new(object);
        self.operations.iter().try_for_each(|operation| operation.apply(&mut document))?;
        document.into_text()
    }
}

// === impl Operation ===

impl Operation {
    /// Like Go, takes the last of duplicate members.
    fn parse(body: &Bytes, cursor: &mut Cursor<'_>) -> Result<Self, NotAPatch> {
        let mut operation = Self::default();
        match cursor.peek()? {
            b'{' => {}
            b'n' => return Ok(cursor.skip().map(|()| operation)?),
            _ => return Err(NotAPatch),
        }
        cursor.object(&mut Edits::new(), |cursor, _, key| {
            let field = match &*key.decode() {
                "op" => &mut operation.op,
                "path" => &mut operation.path,
                "from" => &mut operation.from,
                "value" => {
                    cursor.peek()?;
                    let start = cursor.at();
                    cursor.skip()?;
                    operation.value = Some(body.slice(start..cursor.at()));
                    return Ok(Outcome::Keep);
                }
                _ => {
                    cursor.skip()?;
                    return Ok(Outcome::Keep);
                }
            };
            *field = match cursor.peek()? {
                b'"' => Some(cursor.string()?.decode().into_owned()),
                b'n' => cursor.skip().map(|()| None)?,
                _ => return Err(NotAPatch),
            };
            Ok(Outcome::Keep)
        })?;
        Ok(operation)
    }

    fn apply(&self, document: &mut Document) -> Result<(), DoesNotApply> {
        let path = self.path.as_deref().ok_or(DoesNotApply);
        let from = self.from.as_deref().ok_or(DoesNotApply);
        let value = || self.value.clone().unwrap_or(document::NULL);
        match self.op.as_deref() {
            Some("add") => document.add(path?, value()),
            Some("remove") => document.remove(path?).map(drop),
            Some("replace") => document.replace(path?, value()),
            Some("move") => {
                let moved = document.remove(from?)?;
                document.add(path?, moved)
            }
            Some("copy") => {
                let copied = document.copy(from?)?;
                document.add(path?, copied)
            }
            Some("test") => document.test(path?, &value()),
            _ => Err(DoesNotApply),
        }
    }
}

impl From<Malformed> for NotAPatch {
    fn from(_: Malformed) -> Self {
        Self
    }
}

impl crate::json::Fault for NotAPatch {
    fn within(self, _: crate::json::Step<'_>) -> Self {
        self
    }
}

#[cfg(test)]
mod tests;
