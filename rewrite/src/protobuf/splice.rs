//! Fields of the messages in one body, and their changes.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::{Reader, Value, WireError, Writer, varint_len};

use super::length;
use crate::Sink;
use crate::json::{Edits, Reserved};

/// A body and the changes to it.
pub(crate) struct Splice<'b> {
    body: &'b [u8],
    edits: Edits,
    /// The change in the length of the current message, in bytes.
    grown: isize,
}

/// The state of the outer message while another one is the current message.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Outer {
    grown: isize,
    /// The edit of the current message's length, which is known when its content is.
    length: Reserved,
}

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

/// Why [`Splice::each`] fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EachError {
    Wire(WireError),
    /// A field occurs twice, by its position among the requested ones.
    Repeated(usize),
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

    /// The index of a field among those with its number in the message at `range`.
    pub(crate) fn index_of(&self, found: &Found, range: &Range<usize>) -> usize {
        let mut fields = self.fields(range.start..found.start);
        std::iter::from_fn(|| fields.next(|number| number == found.number).ok().flatten()).count()
    }

    /// Replaces the content of a field by `with`.
    pub(crate) fn replace(&mut self, found: &Found, with: Bytes) {
        let length = self.resize(found, signed(with.len()) - signed(found.inside.len()));
        self.edits.replace(found.length.clone(), length);
        self.edits.replace(found.inside.clone(), with);
    }

    /// Enters the message in a field. It is the current one until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self, found: &Found) -> Outer {
        Outer { grown: std::mem::take(&mut self.grown), length: self.edits.reserve(found.length.start) }
    }

    /// Removes a field of the current message. The field must have no edits.
    pub(crate) fn remove(&mut self, found: &Found) {
        self.grown -= signed(found.inside.end - found.start);
        self.edits.delete(found.start..found.inside.end);
    }

    /// The only field with this number.
    pub(crate) fn only(&self, range: &Range<usize>, number: u32) -> Result<Option<Found>, EnvelopeError> {
        match self.each(range, [Some(number)]) {
            Ok([found]) => Ok(found),
            Err(EachError::Wire(error)) => Err(error.into()),
            Err(EachError::Repeated(_)) => Err(EnvelopeError::Repeated(number)),
        }
    }

    /// The only fields with these numbers, in one pass.
    pub(crate) fn each<const N: usize>(
        &self,
        range: &Range<usize>,
        numbers: [Option<u32>; N],
    ) -> Result<[Option<Found>; N], EachError> {
        let mut found = [const { None }; N];
        let mut fields = self.fields(range.clone());
        let position = |number| numbers.iter().position(|wanted| *wanted == Some(number));
        while let Some((position, field)) = fields.next_known(position)? {
            if found[position].replace(field).is_some() {
                return Err(EachError::Repeated(position));
            }
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
        let grown = std::mem::replace(&mut self.grown, outer.grown);
        if grown == 0 {
            self.edits.release(outer.length);
        } else {
            let length = self.resize(found, grown);
            self.edits.fill(outer.length, found.length.clone(), length);
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

    /// Records that the content of a field grows, and returns its new length, encoded.
    fn resize(&mut self, found: &Found, grown: isize) -> Bytes {
        let length = found.inside.len().saturating_add_signed(grown);
        let encoded = length::encoded(length);
        self.grown += grown + signed(encoded.len()) - signed(found.length.len());
        encoded
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

// === impl EachError ===

impl From<WireError> for EachError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

// === impl Fields ===

impl Fields<'_> {
    /// The next field whose number is `wanted`. It must contain bytes: otherwise Go refuses it or, in the entries of maps, reads
    /// it as if it did.
    pub(crate) fn next(&mut self, wanted: impl Fn(u32) -> bool) -> Result<Option<Found>, WireError> {
        Ok(self.next_known(|number| wanted(number).then_some(()))?.map(|((), found)| found))
    }

    /// The next field for whose number `known` has a value, and this value.
    #[inline]
    pub(crate) fn next_known<T>(&mut self, known: impl Fn(u32) -> Option<T>) -> Result<Option<(T, Found)>, WireError> {
        while let Some(field) = self.reader.next_field()? {
            let Some(value) = known(field.number) else { continue };
            let Value::Bytes(inside) = field.value else { return Err(WireError::UnexpectedType(field.number)) };
            let end = self.start + field.span.end;
            let inside = end - inside.len()..end;
            let tag = tag_length(&self.bytes[field.span.clone()]);
            let found = Found {
                number: field.number,
                start: self.start + field.span.start,
                length: self.start + field.span.start + tag..inside.start,
                inside,
            };
            return Ok(Some((value, found)));
        }
        Ok(None)
    }
}

/// The length of a field's tag, in bytes.
#[inline]
fn tag_length(field: &[u8]) -> usize {
    field.iter().take_while(|byte| **byte >= 0x80).count() + 1
}

fn signed(length: usize) -> isize {
    isize::try_from(length).expect("what is in memory is shorter")
}
