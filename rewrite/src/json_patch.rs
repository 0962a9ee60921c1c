//! JSON patches (RFC 6902), read and applied as kube-apiserver does (`gopkg.in/evanphx/json-patch.v4`).
//!
//! The library is laxer than the RFC: indices count from the end if they are negative, `replace` makes a member that was
//! not there, null is the same as nothing, and what stands before the first slash of a path is passed over. Like the
//! library, this takes apart only what a path leads through. Everything else stays text, so numbers keep their form, and
//! memory does not depend on what a value is made of.
//!
//! What a patch may cost is bounded: the bytes that are copied, as at kube-apiserver, and the work as a whole.

mod document;

use bytes::Bytes;

use crate::json::{Cursor, Edits, Fate, Malformed};
use document::Document;

/// The most operations of one patch (`maxJSONPatchOperations` in apiserver's `handlers/patch.go`).
const MAX_OPERATIONS: usize = 10_000;

/// A patch that can be read; whether it can be applied is another matter.
#[derive(Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// The body is none: no array of objects, too long, or with something else than text for `op`, `path` or `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON patch")]
pub struct NotAPatch;

/// The patch does not apply to the object, or costs too much. Kubernetes does not tell clients why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON patch does not apply")]
pub struct DoesNotApply;

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
                    Ok(Fate::Keep)
                })?;
            }
            b'n' => cursor.skip()?,
            _ => return Err(NotAPatch),
        }
        cursor.finish()?;
        Ok(Self { operations })
    }

    /// The pointers to all that is read or written.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| [&operation.path, &operation.from]).filter_map(Option::as_deref)
    }

    /// The object, which is a JSON text, after the patch.
    pub fn apply(&self, object: Bytes) -> Result<Bytes, DoesNotApply> {
        let mut document = Document::new(object);
        self.operations.iter().try_for_each(|operation| operation.apply(&mut document))?;
        document.into_text()
    }
}

// === impl Operation ===

impl Operation {
    /// Of a member that is there twice Go takes the last.
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
                    return Ok(Fate::Keep);
                }
                _ => {
                    cursor.skip()?;
                    return Ok(Fate::Keep);
                }
            };
            *field = match cursor.peek()? {
                b'"' => Some(cursor.string()?.decode().into_owned()),
                b'n' => cursor.skip().map(|()| None)?,
                _ => return Err(NotAPatch),
            };
            Ok(Fate::Keep)
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
