//! Lists of any length, item by item. One item bounds the memory.
//!
//! ```text
//! {"kind":"PodList","metadata":{...},"items":[ item , item , ... ]}
//! ^ verbatim         ^ one unit               ^ one unit each, kept or left out
//! ```
//! A *unit* is a key, the value of a member, or an item. A unit inside of one chunk is scanned once, in place. A unit that spans
//! chunks is collected first. Everything between units is forwarded unchanged. `rows` of a Table are items too: the two cannot
//! be distinguished before the array begins, because custom lists have their `kind` after their `items`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::binding;
use super::error::StreamError;
use super::filter::{Filter, Verdict};
use super::item_waits::{ExistingNamespaces, ItemWaits};
use super::limit::DEFAULT_ITEM_LIMIT;
use super::object::Reader;
use super::seal::Seal;
use super::settings::Settings;
use super::table::Columns;
use super::value_buffer::ValueBuffer;
use super::whole::View;
use crate::json::{Cursor, Defect, Edits, Malformed, Outcome, Text, quoted};
use crate::program::walk;
use crate::{Mapping, Program, Sink};

mod gap;

use gap::{Gap, Output};

/// Shows a list that arrives in chunks.
pub struct ListStream {
    view: Settings,
    program: Program,
    filter: Filter,
    limit: usize,
    /// Longer units wait for [`resume`](Self::resume).
    at_once: usize,
    seal: Seal,
    /// Whether `remainingItemCount` is correct for the virtual cluster.
    counted: bool,

    state: State,
    /// The unit that began in an earlier chunk.
    buffer: Option<ValueBuffer>,
    waiting: Option<Waiting>,
    waits: ItemWaits,
    gap: Gap,
    columns: Columns,
    edits: Edits,
    /// The number of input bytes before the current chunk, for the offsets of errors.
    passed: usize,
}

/// A unit that waits, and what has arrived after it.
struct Waiting {
    units: Bytes,
    /// Whether `units` is the one unit that began in an earlier chunk.
    is_whole: bool,
    rest: Bytes,
}

/// Why the units of a window were not all handled.
enum Stop {
    /// The unit at this offset is incomplete.
    Incomplete(usize),
    /// The namespace of the item at this offset is not known.
    Unknown(usize),
}

/// The end of a unit, unless it waits.
type Handled = Option<usize>;

/// What comes next in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The brace of the list.
    Start,
    /// A key, or the end of an empty list.
    FirstKey,
    Key,
    Colon(Member),
    Value(Member),
    /// A comma, or the end of the list.
    BehindValue,
    /// An item, or the end of an empty array.
    FirstItem(Member),
    Item(Member),
    /// A comma, or the end of the array.
    BehindItem(Member),
    End,
}

/// The members of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Metadata,
    Columns,
    Items,
    Rows,
    Kind,
    Other,
}

// === impl ListStream ===

impl ListStream {
    /// Shows the items of one list that pass `filter`, each by `program`.
    pub fn new(view: View, program: Program, filter: Filter) -> Self {
        Self {
            view: view.into_settings(),
            program,
            filter,
            limit: DEFAULT_ITEM_LIMIT,
            at_once: usize::MAX,
            seal: Box::new(str::to_owned),
            counted: filter == Filter::Everything,
            state: State::Start,
            buffer: None,
            waiting: None,
            waits: ItemWaits::default(),
            gap: Gap::default(),
            columns: Columns::default(),
            edits: Edits::new(),
            passed: 0,
        }
    }

    /// Replaces `metadata.continue`, which holds a name of the host (`continueToken` in apiserver's continue.go).
    #[must_use]
    pub fn sealing(mut self, seal: impl FnMut(&str) -> String + Send + 'static) -> Self {
        self.seal = Box::new(seal);
        self
    }

    /// The host selects exactly the visible objects, so its number of remaining items is correct.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// Allows this many bytes for one item instead of [`DEFAULT_ITEM_LIMIT`].
    #[must_use]
    pub fn limited_to(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Leaves items that are longer than this to [`resume`](Self::resume), because mapping them may take too long for
    /// the caller of [`push`](Self::push). Chunks must not be longer than this.
    #[must_use]
    pub fn deferring(mut self, longer: usize) -> Self {
        self.at_once = longer;
        self
    }

    /// Lets an item [wait](Self::unknown) for its namespace if the mapping does not know it. Otherwise, the item is left out.
    #[must_use]
    pub fn awaiting_namespaces(mut self) -> Self {
        self.waits.begin(&mut self.view);
        self
    }

    /// Adds the next chunk, of any length, and writes what is complete to `sink`. Do not use the stream after an error.
    /// If an object is [`waiting`](Self::waiting) afterwards, call [`resume`](Self::resume) before anything else.
    pub fn push(&mut self, chunk: &Bytes, sink: &mut impl Sink) -> Result<(), StreamError> {
        let Some(mut buffer) = self.buffer.take() else { return self.window(chunk, false, sink) };
        if let Some(guess) = buffer.guess(chunk)
            && let Some(end) = self.first_unit(&guess, sink)?
        {
            return self.window(&chunk.slice(end - buffer.len()..), false, sink);
        }
        let end = buffer.fill(chunk);
        if buffer.len() > self.limit {
            return Err(self.too_long());
        }
        let Some(end) = end else {
            self.buffer = Some(buffer);
            return Ok(());
        };
        let (units, rest) = (buffer.into_bytes(), chunk.slice(end..));
        let waiting = Waiting { units, is_whole: true, rest };
        if waiting.units.len() > self.at_once {
            self.waiting = Some(waiting);
            return Ok(());
        }
        self.windows(waiting, sink)
    }

    /// The length of what waits for [`resume`](Self::resume), in bytes: a long item, or an item whose namespace is
    /// [unknown](Self::unknown).
    pub fn waiting(&self) -> Option<usize> {
        self.waiting.as_ref().map(|waiting| waiting.units.len())
    }

    /// The host name of the namespace for which an item waits.
    pub fn unknown(&self) -> Option<&[u8]> {
        self.waiting.as_ref().and(self.waits.awaited())
    }

    /// Items in other namespaces than these do not wait, because no other namespace exists.
    pub fn await_only(&mut self, existing: Arc<ExistingNamespaces>) {
        self.waits.limit(existing);
    }

    /// Uses newer names from the next item on.
    pub fn remap(&mut self, newer: Mapping) {
        self.waits.remap(&mut self.view, newer);
    }

    /// Handles what waits, and the rest of its last chunk. It may wait again.
    pub fn resume(&mut self, sink: &mut impl Sink) -> Result<(), StreamError> {
        match self.waiting.take() {
            Some(waiting) => self.windows(waiting, sink),
            None => Ok(()),
        }
    }

    /// Handles a window, and then the rest of its chunk, unless an item waits.
    fn windows(&mut self, waiting: Waiting, sink: &mut impl Sink) -> Result<(), StreamError> {
        let Waiting { units, is_whole, rest } = waiting;
        self.window(&units, is_whole, sink)?;
        if let Some(waiting) = &mut self.waiting {
            waiting.rest = rest;
            return Ok(());
        }
        match &self.buffer {
            Some(_) if is_whole => Err(Malformed { offset: self.passed, defect: Defect::UnexpectedByte }.into()),
            _ if rest.is_empty() => Ok(()),
            _ => self.window(&rest, false, sink),
        }
    }

    /// Ends the list: there are no more chunks.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        if self.state == State::End && self.buffer.is_none() && self.waiting.is_none() {
            return Ok(());
        }
        Err(Malformed { offset: self.passed, defect: Defect::UnexpectedEnd }.into())
    }

    /// Handles all units of a window, and begins to collect an incomplete one. `whole`: the first unit is complete, even if it is
    /// a number at the end of the window.
    fn window(&mut self, window: &Bytes, whole: bool, sink: &mut impl Sink) -> Result<(), StreamError> {
        let mut output = Output::new(window, sink);
        self.gap.enter_window();
        let stop = self.units(window, whole, &mut output).map_err(|malformed| self.located(malformed))?;
        let end = match stop {
            Some(Stop::Incomplete(start) | Stop::Unknown(start)) => start,
            None => window.len(),
        };
        self.leave(end, output);
        if self.gap.len() > self.limit {
            return Err(self.too_long());
        }
        match stop {
            Some(Stop::Incomplete(start)) if window.len() - start > self.limit => return Err(self.too_long()),
            Some(Stop::Incomplete(start)) => self.buffer = Some(ValueBuffer::begin(&window[start..])),
            Some(Stop::Unknown(start)) => {
                self.waiting = Some(Waiting { units: window.slice(start..), is_whole: whole, rest: Bytes::new() });
            }
            None => {}
        }
        Ok(())
    }

    /// Handles the unit at the start of a window. Returns its end. Changes nothing if the end is not in the window.
    fn first_unit(&mut self, window: &Bytes, sink: &mut impl Sink) -> Result<Option<usize>, StreamError> {
        if Cursor::new(window, 0, 0).is_cut_scalar() {
            return Ok(None);
        }
        let mut output = Output::new(window, sink);
        self.gap.enter_window();
        match self.unit(window, 0, &mut output) {
            Ok(Some(end)) => {
                self.leave(end, output);
                Ok(Some(end))
            }
            // An item that waits is collected, as an incomplete one.
            Ok(None) | Err(Malformed { defect: Defect::UnexpectedEnd, .. }) => Ok(None),
            Err(malformed) => Err(self.located(malformed).into()),
        }
    }

    /// Ends a window at `end`.
    fn leave(&mut self, end: usize, mut output: Output<'_, impl Sink>) {
        if matches!(self.state, State::FirstItem(_) | State::Item(_) | State::BehindItem(_)) {
            self.gap.leave_window(end, &mut output);
        }
        output.flush(end);
        self.passed += end;
    }

    /// The same error with its offset in the whole list.
    fn located(&self, mut malformed: Malformed) -> Malformed {
        malformed.offset += self.passed;
        malformed
    }

    /// Scans the text, as far as possible.
    fn units(
        &mut self,
        window: &Bytes,
        mut whole: bool,
        output: &mut Output<'_, impl Sink>,
    ) -> Result<Option<Stop>, Malformed> {
        let mut cursor = Cursor::new(window, 0, 0);
        while !cursor.is_at_end() {
            if self.pass_mark(&mut cursor, output)? {
                continue;
            }
            let start = cursor.at();
            if !whole && cursor.is_cut_scalar() {
                return Ok(Some(Stop::Incomplete(start)));
            }
            let end = match self.unit(window, start, output) {
                Ok(Some(end)) => end,
                Ok(None) => return Ok(Some(Stop::Unknown(start))),
                Err(Malformed { defect: Defect::UnexpectedEnd, .. }) if !whole => {
                    return Ok(Some(Stop::Incomplete(start)));
                }
                Err(malformed) => return Err(malformed),
            };
            cursor = Cursor::new(window, end, 0);
            whole = false;
        }
        Ok(None)
    }

    /// Skips a punctuation mark between units, if there is one.
    fn pass_mark(&mut self, cursor: &mut Cursor<'_>, output: &mut Output<'_, impl Sink>) -> Result<bool, Malformed> {
        let start = cursor.at();
        self.state = match (self.state, cursor.peek()?) {
            (State::Start, _) => {
                cursor.expect(b'{')?;
                State::FirstKey
            }
            (State::FirstKey | State::BehindValue, b'}') => {
                cursor.expect(b'}')?;
                State::End
            }
            (State::Colon(member), _) => {
                cursor.expect(b':')?;
                State::Value(member)
            }
            (State::Value(member @ (Member::Items | Member::Rows)), b'[') => {
                cursor.expect(b'[')?;
                self.gap.open(cursor.at());
                State::FirstItem(member)
            }
            (State::FirstItem(_) | State::BehindItem(_), b']') => {
                self.gap.close(start, output);
                cursor.expect(b']')?;
                State::BehindValue
            }
            (State::BehindValue, _) => {
                cursor.expect(b',')?;
                State::Key
            }
            (State::BehindItem(member), _) => {
                cursor.expect(b',')?;
                State::Item(member)
            }
            (State::End, _) => return cursor.finish().map(|()| true),
            (State::FirstKey | State::Key | State::Value(_) | State::FirstItem(_) | State::Item(_), _) => {
                return Ok(false);
            }
        };
        Ok(true)
    }

    /// Handles the unit at `start` and returns its end. Changes nothing if it is incomplete, or if it must wait.
    fn unit(&mut self, window: &Bytes, start: usize, output: &mut Output<'_, impl Sink>) -> Result<Handled, Malformed> {
        self.edits.clear();
        // Only now are containers open around the unit: the list, and the array that an item is in.
        let depth = usize::from(!matches!(self.state, State::FirstKey | State::Key));
        let mut cursor = Cursor::new(window, start, depth);
        match self.state {
            State::Value(member) => {
                self.value(member, &mut cursor)?;
                output.splice(start..cursor.at(), &mut self.edits);
                self.state = State::BehindValue;
            }
            State::FirstItem(member) | State::Item(member) => {
                let verdict = self.item(member, &mut cursor)?;
                match verdict {
                    Verdict::Shown => {
                        self.waits.forget();
                        self.gap.keep(start, cursor.at(), output);
                        output.splice(start..cursor.at(), &mut self.edits);
                    }
                    Verdict::Foreign | Verdict::Unselected | Verdict::Left if self.waits.must_wait() => {
                        return Ok(None);
                    }
                    Verdict::Foreign | Verdict::Unselected | Verdict::Left => {
                        self.gap.leave_out(start, cursor.at(), output);
                    }
                }
                self.state = State::BehindItem(member);
            }
            _ => self.state = State::Colon(Member::of(&cursor.string()?)),
        }
        Ok(Some(cursor.at()))
    }

    /// An item of a list, or a row of a Table.
    fn item(&mut self, member: Member, cursor: &mut Cursor<'_>) -> Result<Verdict, Malformed> {
        if member == Member::Rows {
            return self.columns.row(&self.view, &self.program, self.filter, cursor, &mut self.edits);
        }
        let mut reader = Reader::new(&self.view, self.filter);
        walk(&mut reader, self.program.root(), cursor, &mut self.edits)?;
        Ok(reader.conclude(&self.program, cursor, &mut self.edits))
    }

    fn value(&mut self, member: Member, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        match member {
            Member::Metadata if cursor.peek()? == b'{' => self.metadata(cursor),
            Member::Columns => self.columns.read(cursor),
            Member::Kind if self.program.is_of_cluster_bindings() => binding::kind(cursor, &mut self.edits),
            _ => cursor.skip(),
        }
    }

    /// `metav1.ListMeta`.
    fn metadata(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        cursor.object(&mut self.edits, |cursor, edits, key| {
            if key.is("continue") && cursor.peek()? == b'"' {
                let token = cursor.string()?;
                if !token.raw.is_empty() {
                    let sealed = quoted(&(self.seal)(&token.decode()));
                    edits.replace(token.start - 1..token.range().end + 1, Bytes::from(sealed));
                }
                return Ok(Outcome::Keep);
            }
            cursor.skip()?;
            // Otherwise it counts the objects of all virtual clusters.
            let counts_others = key.is("remainingItemCount") && !self.counted;
            Ok::<_, Malformed>(if counts_others { Outcome::Remove } else { Outcome::Keep })
        })?;
        Ok(())
    }

    fn too_long(&self) -> StreamError {
        StreamError::TooLong { limit: self.limit }
    }
}

impl fmt::Debug for ListStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListStream")
            .field("filter", &self.filter)
            .field("state", &self.state)
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}

// === impl Member ===

impl Member {
    fn of(key: &Text<'_>) -> Self {
        let known = [
            ("metadata", Self::Metadata),
            ("columnDefinitions", Self::Columns),
            ("items", Self::Items),
            ("rows", Self::Rows),
            ("kind", Self::Kind),
        ];
        known.into_iter().find(|(name, _)| key.is(name)).map_or(Self::Other, |(_, member)| member)
    }
}

#[cfg(test)]
mod tests;
