//! Fields of the messages in one body, and their changes.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::{Reader, Value, WireError, Writer, varint_len};

use super::length;
use crate::Sink;
use crate::json::Edits;

/// A body and the changes to it.
pub(crate) struct Splice<'b> {
    body: &'b [u8],
    edits: Edits,
    /// The change in the length of the current message, in bytes.
    grown: isize,
}

/// The growth of the outer message at the moment when the current message was entered.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Outer(isize);

/// A field with a length: a string, bytes or a message.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) number: u32,
    /// Its start in the body.
    start: usize,
    /// The range of the length in the body.
    length: Range<usize>,
    /// The range of the content.
    pub(crate) inside: Range<usize>,
}

/// A field with a number.
#[derive(Clone, Debug)]
pub(crate) struct FoundNumber {
    pub(crate) value: u64,
    /// Its range in the body.
    range: Range<usize>,
}

/// The fields of one message.
pub(crate) struct Fields<'b> {
    reader: Reader<'b>,
    /// The start of the message in the body.
    start: usize,
    bytes: &'b [u8],
}

// === impl Splice ===

impl<'b> Splice<'b> {
    pub(crate) fn new(body: &'b [u8]) -> Self {
        Self { body, edits: Edits::new(), grown: 0 }
    }

    /// The fields of the message at `range`.
    pub(crate) fn fields(&self, range: Range<usize>) -> Fields<'b> {
        let bytes = &self.body[range.clone()];
        Fields { reader: Reader::new(bytes), start: range.start, bytes }
    }

    /// The bytes at `range`.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'b [u8] {
        &self.body[range]
    }

    /// The content of a field.
    pub(crate) fn bytes(&self, found: &Found) -> &'b [u8] {
        self.slice(found.inside.clone())
    }

    /// Replaces the content of a field by `with`.
    pub(crate) fn replace(&mut self, found: &Found, with: Bytes) {
        self.resize(found, signed(with.len()) - signed(found.inside.len()));
        self.edits.replace(found.inside.clone(), with);
    }

    /// Enters a message, which is the current one until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self) -> Outer {
        Outer(std::mem::take(&mut self.grown))
    }

    /// Removes a field of the current message. The field must have no edits.
    pub(crate) fn remove(&mut self, found: &Found) {
        self.grown -= signed(found.inside.end - found.start);
        self.edits.delete(found.start..found.inside.end);
    }

    /// The only field with this number.
    pub(crate) fn only(&self, range: &Range<usize>, number: u32) -> Result<Option<Found>, EnvelopeError> {
        let mut fields = self.fields(range.clone());
        let found = fields.next(|other| other == number)?;
        if found.is_some() && fields.next(|other| other == number)?.is_some() {
            return Err(EnvelopeError::Repeated(number));
        }
        Ok(found)
    }

    /// The content of the only field with this number. Empty if there is none, which is equivalent.
    pub(crate) fn text(&self, range: &Range<usize>, number: Option<u32>) -> Result<&'b [u8], EnvelopeError> {
        let Some(number) = number else { return Ok(b"") };
        Ok(self.only(range, number)?.map_or(b"", |found| self.bytes(&found)))
    }

    /// The only field with this number, which must contain a number.
    pub(crate) fn number(&self, range: &Range<usize>, number: u32) -> Result<Option<FoundNumber>, EnvelopeError> {
        let bytes = self.slice(range.clone());
        let (mut reader, mut found) = (Reader::new(bytes), None);
        while let Some(field) = reader.next_field()? {
            if field.number != number {
                continue;
            }
            let value = field.varint()?;
            let start = field.span.start + tag_length(&bytes[field.span.clone()]);
            let number_at = range.start + start..range.start + field.span.end;
            if found.replace(FoundNumber { value, range: number_at }).is_some() {
                return Err(EnvelopeError::Repeated(number));
            }
        }
        Ok(found)
    }

    /// Replaces a number.
    pub(crate) fn renumber(&mut self, found: &FoundNumber, with: u64) {
        let mut varint = Writer::new();
        varint.raw_varint(with);
        self.grown += signed(varint_len(with)) - signed(found.range.len());
        self.edits.replace(found.range.clone(), varint.into_bytes().into());
    }

    /// The growth of the outermost message, in bytes.
    pub(crate) fn grown(&self) -> isize {
        self.grown
    }

    /// Leaves the message in a field, and corrects its length.
    pub(crate) fn leave(&mut self, found: &Found, outer: Outer) {
        let grown = std::mem::replace(&mut self.grown, outer.0);
        if grown != 0 {
            self.resize(found, grown);
        }
    }

    /// Adds fields at the end of the message at `range`, which is the current one.
    pub(crate) fn append(&mut self, range: &Range<usize>, fields: Writer) {
        let fields = fields.into_bytes();
        if fields.is_empty() {
            return;
        }
        self.grown += signed(fields.len());
        self.edits.insert(range.end, fields);
    }

    fn resize(&mut self, found: &Found, grown: isize) {
        let length = found.inside.len().saturating_add_signed(grown);
        let encoded = length::encoded(length);
        self.grown += grown + signed(encoded.len()) - signed(found.length.len());
        self.edits.replace(found.length.clone(), encoded);
    }

    /// Writes the changed body to `sink`. `body` is the whole body.
    pub(crate) fn finish(mut self, body: &Bytes, sink: &mut impl Sink) {
        self.edits.splice(body, 0..body.len(), sink);
    }
}

// === impl Found ===

impl Found {
    /// Whether the field is empty, which is equivalent to an absent one.
    pub(crate) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }
}

// === impl Fields ===

impl Fields<'_> {
    /// The next field with the number `wanted`. It must contain bytes: otherwise Go refuses it or, in the entries of maps, reads
    /// it as if it did.
    pub(crate) fn next(&mut self, wanted: impl Fn(u32) -> bool) -> Result<Option<Found>, WireError> {
        while let Some(field) = self.reader.next_field()? {
            if !wanted(field.number) {
                continue;
            }
            let Value::Bytes(inside) = field.value else { return Err(WireError::UnexpectedType(field.number)) };
            let end = self.start + field.span.end;
            let inside = end - inside.len()..end;
            let tag = tag_length(&self.bytes[field.span.clone()]);
            return Ok(Some(Found {
                number: field.number,
                start: self.start + field.span.start,
                length: self.start + field.span.start + tag..inside.start,
                inside,
            }));
        }
        Ok(None)
    }
}

/// The length of a field's tag, in bytes.
fn tag_length(field: &[u8]) -> usize {
    field.iter().take_while(|byte| **byte >= 0x80).count() + 1
}

fn signed(length: usize) -> isize {
    isize::try_from(length).expect("what is in memory is shorter")
}
