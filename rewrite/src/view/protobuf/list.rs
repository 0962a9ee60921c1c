//! Lists in protobuf: read item by item, and kept until their length is known.
//!
//! ```text
//! k8s\0  type  raw { metadata  item  item ... }  encodings
//!              ^ follows its length
//! ```
//! The length of the mapped list depends on all of its items, so nothing can be sent before the last one has arrived. Visible
//! items are held up to a limit, and items of others are never held. Beyond the limit, the client must request pages, or accept
//! JSON, which is streamed. There is no better way: a padded list with an estimated length would disclose how much others have,
//! and a second request to the host would double its work and could return a different list.

use std::fmt;

use bytes::{Buf as _, Bytes, BytesMut};
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::proto::{Reader, Value, WireError, Writer};

use super::super::error::{StreamError, Unreadable};
use super::super::filter::{Filter, Verdict};
use super::super::item_waits::ItemWaits;
use super::super::limit::DEFAULT_ITEM_LIMIT;
use super::super::seal::Seal;
use super::super::settings::Settings;
use super::envelope::{METADATA, RAW, behind_magic};
use super::kind::{Content, Kind, Part};
use super::object::ObjectReader;
use crate::protobuf::Splice;
use crate::{Mapping, Program, Sink};

/// The size limit of one list. Five thousand pods of 3 KB have half of it. Clients with more request pages of 500
/// (`defaultPageSize` in client-go's pager.go), or a watch that begins with the state.
pub const DEFAULT_LIST_LIMIT: usize = 32 << 20;

/// `items` of every list (for instance `PodList` in core/v1 generated.proto).
const ITEMS: u32 = 2;
/// `ListMeta` in apimachinery's meta/v1 generated.proto.
const CONTINUE: u32 = 3;
const REMAINING: u32 = 4;
/// The maximum length of a piece of the list, unless one item is longer.
const PIECE: usize = 64 << 10;
/// Fields of the envelope beside the list are shorter than this.
const SHORT: usize = 4 << 10;

/// Shows a list that arrives in chunks, once it is complete.
pub(in crate::view) struct List {
    view: Settings,
    program: Program,
    filter: Filter,
    /// The size limits of one item and of the list.
    pub(in crate::view) item_limit: usize,
    pub(in crate::view) limit: usize,
    pub(in crate::view) seal: Seal,
    /// Whether the host selects exactly the visible objects, so that its number of remaining items is correct.
    pub(in crate::view) counted: bool,
    /// Known from the first chunk.
    kind: Option<Kind>,
    state: State,
    /// The received bytes that were not read.
    pending: BytesMut,
    pub(in crate::view) waits: ItemWaits,
    /// An item that waits for its namespace.
    waiting: Option<(Part, Bytes)>,
    /// The mapped output: the envelope before the list, the list, and the envelope after it.
    head: Vec<u8>,
    output: ListOutput,
    tail: Vec<u8>,
}

/// Bytes in pieces, so that the sender can free each piece once it is sent.
#[derive(Default)]
struct ListOutput {
    pieces: Vec<Bytes>,
    /// The last piece, to which more is added.
    open: Vec<u8>,
    /// The number of bytes in all pieces.
    len: usize,
}

/// The next part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Magic,
    /// Fields of the envelope.
    Head,
    /// Fields of the list, with the number of remaining bytes.
    List(Part, usize),
    /// Fields of the envelope again.
    Tail,
}

/// The beginning of a field.
struct Begun {
    number: u32,
    is_message: bool,
    /// The length without the content, and the length with it.
    head: usize,
    length: usize,
}

// === impl List ===

impl List {
    /// Shows the items of one list that pass `filter`, each by `program`.
    pub(in crate::view) fn new(view: Settings, program: Program, filter: Filter) -> Self {
        Self {
            view,
            program,
            filter,
            item_limit: DEFAULT_ITEM_LIMIT,
            limit: DEFAULT_LIST_LIMIT,
            seal: Box::new(str::to_owned),
            counted: filter == Filter::Everything,
            kind: None,
            state: State::Magic,
            pending: BytesMut::new(),
            waits: ItemWaits::default(),
            waiting: None,
            head: Vec::new(),
            output: ListOutput::default(),
            tail: Vec::new(),
        }
    }

    /// Adds the next chunk, of any length. Do not use the stream after an error.
    pub(in crate::view) fn push(&mut self, chunk: &[u8]) -> Result<(), StreamError> {
        self.pending.extend_from_slice(chunk);
        self.resume()
    }

    /// Lets items wait for their namespaces.
    pub(in crate::view) fn await_namespaces(&mut self) {
        self.waits.begin(&mut self.view);
    }

    /// Uses newer names from the next item on.
    pub(in crate::view) fn remap(&mut self, newer: Mapping) {
        self.waits.remap(&mut self.view, newer);
    }

    /// Handles the item that waits, and what has arrived after it.
    pub(in crate::view) fn resume(&mut self) -> Result<(), StreamError> {
        if let Some((part, item)) = self.waiting.take() {
            self.item(part, &item)?;
            self.check()?;
        }
        while self.waiting.is_none() && self.step()? {}
        Ok(())
    }

    /// Bytes held now: the output so far, and the received part of the next item.
    pub(in crate::view) fn held(&self) -> usize {
        self.output.len + self.pending.len() + self.waiting.as_ref().map_or(0, |(_, item)| item.len())
    }

    /// The bytes of an item that has not arrived whole.
    pub(in crate::view) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Ends the input, and returns the list in pieces.
    pub(in crate::view) fn finish(self) -> Result<Vec<Bytes>, StreamError> {
        let whole = matches!(self.state, State::Tail) && self.pending.is_empty() && self.waiting.is_none();
        if !whole {
            return Err(Unreadable::from(WireError::Truncated).into());
        }
        let envelope = [&MAGIC[..], &self.tail].concat();
        if !Envelope::decode(&envelope).map_err(Unreadable::from)?.holds_protobuf() {
            return Err(Unreadable::Wrapped.into());
        }
        let mut before = Writer::after([&MAGIC[..], &self.head].concat());
        before.raw_varint(u64::from(RAW) << 3 | 2);
        before.raw_varint(self.output.len as u64);
        let mut shown = vec![Bytes::from(before.into_bytes())];
        shown.extend(self.output.into_pieces());
        shown.extend((!self.tail.is_empty()).then(|| Bytes::from(self.tail)));
        Ok(shown)
    }

    /// Reads the next field, if it is complete.
    fn step(&mut self) -> Result<bool, StreamError> {
        let limit = match self.state {
            State::Magic => return self.magic(),
            State::List(_, 0) => {
                self.state = State::Tail;
                return Ok(true);
            }
            State::List(..) => self.item_limit,
            State::Head | State::Tail => SHORT,
        };
        let Some(begun) = Begun::read(&self.pending)? else { return Ok(false) };
        if self.state == State::Head && begun.number == RAW {
            self.pending.advance(begun.head);
            self.state = State::List(self.part()?, begun.length);
            return Ok(true);
        }
        let whole = begun.head.saturating_add(begun.length);
        if begun.length > limit {
            return Err(StreamError::TooLong { limit });
        }
        if let State::List(part, left) = self.state {
            let left = left.checked_sub(whole).ok_or(Unreadable::from(WireError::Truncated))?;
            if self.pending.len() < whole {
                return Ok(false);
            }
            let field = self.pending.split_to(whole).freeze();
            self.state = State::List(part, left);
            self.list_field(part, &begun, &field)?;
            return Ok(true);
        }
        if self.pending.len() < whole {
            return Ok(false);
        }
        let field = self.pending.split_to(whole);
        if self.state == State::Head { &mut self.head } else { &mut self.tail }.extend_from_slice(&field);
        let outside = self.head.len().max(self.tail.len());
        if outside > SHORT { Err(StreamError::TooLong { limit: SHORT }) } else { Ok(true) }
    }

    fn magic(&mut self) -> Result<bool, StreamError> {
        if self.pending.len() < MAGIC.len() {
            return Ok(false);
        }
        self.pending.advance(behind_magic(&self.pending)?);
        self.state = State::Head;
        Ok(true)
    }

    /// The type of the items, which the envelope has before them.
    fn part(&mut self) -> Result<Part, StreamError> {
        let envelope = [&MAGIC[..], &self.head].concat();
        let envelope = Envelope::decode(&envelope).map_err(Unreadable::from)?;
        let kind = Kind::of(&self.program)?;
        let content = kind.content(envelope.api_version, envelope.kind)?;
        let Content::List(part) = content else {
            let (api_version, kind) = (envelope.api_version.to_owned(), envelope.kind.to_owned());
            return Err(Unreadable::Kind { api_version, kind }.into());
        };
        self.kind = Some(kind);
        Ok(part)
    }

    /// A field of the list.
    fn list_field(&mut self, part: Part, begun: &Begun, field: &Bytes) -> Result<(), StreamError> {
        match begun.number {
            ITEMS if begun.is_message => self.item(part, &field.slice(begun.head..))?,
            METADATA if begun.is_message => self.metadata(&field[begun.head..])?,
            _ => self.output.push(field.len(), |list| list.extend_from_slice(field)),
        }
        self.check()
    }

    fn check(&self) -> Result<(), StreamError> {
        if self.output.len > self.limit { Err(StreamError::TooMuch { limit: self.limit }) } else { Ok(()) }
    }

    fn item(&mut self, part: Part, item: &Bytes) -> Result<(), Unreadable> {
        let kind = self.kind.as_ref().ok_or(Unreadable::NoSchema)?;
        let mut reader = ObjectReader::new(&self.view, kind, self.filter, Splice::new(item));
        if reader.object(part, &(0..item.len()))? == Verdict::Foreign {
            if self.waits.must_wait() {
                self.waiting = Some((part, item.clone()));
            }
            return Ok(());
        }
        self.waits.forget();
        let splice = reader.into_splice();
        let length = item.len().saturating_add_signed(splice.grown());
        // A tag and the maximum size of a length.
        self.output.push(length + 11, |list| {
            let mut begun = Writer::after(std::mem::take(list));
            begun.raw_varint(u64::from(ITEMS) << 3 | 2);
            begun.raw_varint(length as u64);
            *list = begun.into_bytes();
            splice.finish(item, &mut Copied(list));
        });
        Ok(())
    }

    /// `metav1.ListMeta`.
    fn metadata(&mut self, metadata: &[u8]) -> Result<(), Unreadable> {
        let mut shown = Writer::new();
        let mut fields = Reader::new(metadata);
        while let Some(field) = fields.next_field()? {
            match (field.number, field.value) {
                // Otherwise it counts the objects of all virtual clusters.
                (REMAINING, _) if !self.counted => {}
                (CONTINUE, Value::Bytes(token)) if !token.is_empty() => {
                    shown.bytes(CONTINUE, (self.seal)(&String::from_utf8_lossy(token)).as_bytes());
                }
                _ => shown.raw(&metadata[field.span]),
            }
        }
        let shown = shown.into_bytes();
        self.output.push(shown.len() + 11, |list| {
            let mut writer = Writer::after(std::mem::take(list));
            writer.bytes(METADATA, &shown);
            *list = writer.into_bytes();
        });
        Ok(())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("filter", &self.filter)
            .field("state", &self.state)
            .field("output", &self.output.len)
            .finish_non_exhaustive()
    }
}

// === impl ListOutput ===

impl ListOutput {
    /// Lets `write` add about this many bytes.
    fn push(&mut self, about: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.open.is_empty() && self.open.len() + about > PIECE {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
        let needed = self.open.len() + about;
        if self.open.capacity() < needed {
            // Does not double beyond a piece, because the spare capacity would be kept with it.
            let capacity = (2 * self.open.capacity()).min(PIECE).max(needed);
            self.open.reserve_exact(capacity - self.open.len());
        }
        let before = self.open.len();
        write(&mut self.open);
        self.len += self.open.len() - before;
    }

    fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        let last = (!self.open.is_empty()).then(|| self.open.into());
        self.pieces.into_iter().chain(last)
    }
}

// === impl Begun ===

impl Begun {
    /// The beginning of a field. `None` while it is incomplete.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Unreadable> {
        // The maximum sizes of a tag and of a length.
        let beginning = &bytes[..bytes.len().min(20)];
        let Some((tag, tag_length)) = varint(beginning)? else { return Ok(None) };
        let number = u32::try_from(tag >> 3).map_err(|_| WireError::FieldNumber)?;
        if tag & 7 == 2 {
            let Some((length, length_length)) = varint(&beginning[tag_length..])? else { return Ok(None) };
            let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
            return Ok(Some(Self { number, is_message: true, head: tag_length + length_length, length }));
        }
        match Reader::new(beginning).next_field() {
            Ok(field) => Ok(field.map(|field| Self { number, is_message: false, head: field.span.end, length: 0 })),
            Err(WireError::Truncated) if beginning.len() == bytes.len() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A number and its length. `None` while it is incomplete.
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, WireError> {
    let Some(length) = bytes.iter().position(|byte| byte & 0x80 == 0) else {
        return if bytes.len() < 10 { Ok(None) } else { Err(WireError::Overflow) };
    };
    if length > 9 || (length == 9 && bytes[9] > 1) {
        return Err(WireError::Overflow);
    }
    let number = bytes[..=length].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Ok(Some((number, length + 1)))
}

/// Copies its input, so that nothing keeps whole chunks in memory.
struct Copied<'v>(&'v mut Vec<u8>);

impl Sink for Copied<'_> {
    fn emit(&mut self, piece: Bytes) {
        self.0.extend_from_slice(&piece);
    }
}
