//! Visits the members and elements of objects and arrays, and removes some of them.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::edit::Edits;
use super::fault::{Defect, Fault, Malformed, Step};
use super::nesting::MAX_DEPTH;
use super::text::Text;

/// What happens to a visited member or element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Keep it, with the edits in it.
    Keep,
    /// Remove it, with its comma.
    Remove,
}

/// The result of a visit to a container.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The offset after the opening bracket, at which a new first member can be inserted.
    pub inside: usize,
    /// The offset of the closing bracket, at which a new last element can be inserted.
    pub close: usize,
    /// The number of kept members or elements.
    pub kept: usize,
    /// The number of removed members or elements.
    pub removed: usize,
}

/// The comma to remove with a member: the one before it, or the one after it if no member before it is kept.
#[derive(Default)]
struct Cuts {
    kept: usize,
    removed: usize,
    /// The start of a removed run that nothing kept precedes.
    leading: Option<usize>,
    /// The end of the last value.
    end: usize,
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    /// Visits the members of the object that is the next token. `visit` gets the key, with the cursor before the value, and
    /// must consume exactly that value.
    pub fn object<E: Fault>(
        &mut self,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &mut Edits, Text<'a>) -> Result<Fate, E>,
    ) -> Result<Extent, E> {
        self.container(b'{', b'}', edits, |cursor, edits, _| {
            let key = cursor.key()?;
            visit(cursor, edits, key).map_err(|error| error.within(Step::Key(&key.decode())))
        })
    }

    /// Visits the elements of the array that is the next token, each with its index.
    pub fn array<E: Fault>(
        &mut self,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &mut Edits, usize) -> Result<Fate, E>,
    ) -> Result<Extent, E> {
        self.container(b'[', b']', edits, |cursor, edits, index| {
            visit(cursor, edits, index).map_err(|error| error.within(Step::Element(index)))
        })
    }

    /// The string at `key` of the object that is the next token, without consuming anything. The first such member
    /// counts. `None` if there is none, if it is not a string, or if the next token is not an object.
    pub fn look_up(&self, key: &str) -> Result<Option<Text<'a>>, Malformed> {
        let Some(mut member) = self.member_at(key)? else { return Ok(None) };
        match member.peek()? {
            b'"' => member.string().map(Some),
            _ => Ok(None),
        }
    }

    /// A cursor before the value at `key` of the object that is the next token. The first such member counts. `None` if there
    /// is none, or if the next token is not an object.
    pub fn member_at(&self, key: &str) -> Result<Option<Self>, Malformed> {
        let mut ahead = self.clone();
        if ahead.peek()? != b'{' {
            return Ok(None);
        }
        ahead.bump();
        ahead.depth += 1;
        if ahead.peek()? == b'}' {
            return Ok(None);
        }
        loop {
            if ahead.key()?.is(key) {
                ahead.peek()?;
                return Ok(Some(ahead));
            }
            ahead.skip()?;
            if ahead.peek()? != b',' {
                return Ok(None);
            }
            ahead.bump();
        }
    }

    /// The strings in the array at `key` of the object that is the next token. Empty if there is no array.
    pub fn strings_at(&self, key: &str) -> Result<Vec<Cow<'a, str>>, Malformed> {
        let mut strings = Vec::new();
        let Some(mut array) = self.member_at(key)? else { return Ok(strings) };
        if array.peek()? == b'[' {
            array.array(&mut Edits::new(), |element, _, _| {
                if element.peek()? == b'"' {
                    strings.push(element.string()?.decode());
                } else {
                    element.skip()?;
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
        }
        Ok(strings)
    }

    /// The number of elements in the array at `key` of the object that is the next token. Zero if there is no array.
    pub fn elements_at(&self, key: &str) -> Result<usize, Malformed> {
        let Some(mut array) = self.member_at(key)? else { return Ok(0) };
        if array.peek()? != b'[' {
            return Ok(0);
        }
        let mut elements = 0;
        array.array(&mut Edits::new(), |element, _, _| {
            elements += 1;
            element.skip()?;
            Ok::<_, Malformed>(Fate::Keep)
        })?;
        Ok(elements)
    }

    /// The range to cut to remove the member from `start` to `end` of an object, with one comma if there is one.
    /// Two neighbours of which the first has nothing before it share that comma: see [`next_member`](Self::next_member).
    pub fn cut_around(&self, start: usize, end: usize) -> std::ops::Range<usize> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let before = self.slice(0..start);
        let space = before.iter().rev().take_while(|byte| is_space(byte)).count();
        if before[..start - space].ends_with(b",") {
            return start - space - 1..end;
        }
        start..self.next_member(end)
    }

    /// The start of the member after the one that ends at `end`, or `end` if there is none.
    pub fn next_member(&self, end: usize) -> usize {
        let mut behind = self.clone();
        behind.move_to(end);
        if behind.peek().is_ok_and(|byte| byte == b',') {
            behind.bump();
            // The start of the next member, if the text is whole.
            let _ = behind.peek();
            return behind.at();
        }
        end
    }

    #[inline]
    fn container<E: From<Malformed>>(
        &mut self,
        open: u8,
        close: u8,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &mut Edits, usize) -> Result<Fate, E>,
    ) -> Result<Extent, E> {
        self.expect(open)?;
        if self.depth >= MAX_DEPTH {
            return Err(self.defect(Defect::TooDeep).into());
        }
        self.depth += 1;
        let inside = self.at();
        let mut cuts = Cuts::default();
        if self.peek()? != close {
            for index in 0.. {
                // The value begins at a token, not at the white space before it.
                self.peek()?;
                let start = self.at();
                self.member = start;
                cuts.next(start, edits);
                let mark = edits.mark();
                match visit(self, edits, index)? {
                    Fate::Keep => cuts.kept += 1,
                    Fate::Remove => {
                        // Discard edits in a removed value: their ranges must not overlap the cut.
                        edits.forget_since(mark);
                        cuts.remove(start, self.at(), edits);
                    }
                }
                cuts.end = self.at();
                match self.peek()? {
                    b',' => self.bump(),
                    byte if byte == close => break,
                    _ => return Err(self.defect(Defect::UnexpectedByte).into()),
                }
            }
        }
        let closing = self.at();
        self.bump();
        self.depth -= 1;
        cuts.finish(edits);
        Ok(Extent { inside, close: closing, kept: cuts.kept, removed: cuts.removed })
    }
}

// === impl Cuts ===

impl Cuts {
    /// A member begins; if only removed ones stand before it, they go together with the comma in front of it.
    fn next(&mut self, start: usize, edits: &mut Edits) {
        if let Some(from) = self.leading.take() {
            edits.delete(from..start);
        }
    }

    fn remove(&mut self, start: usize, end: usize, edits: &mut Edits) {
        self.removed += 1;
        if self.kept == 0 {
            self.leading = Some(start);
        } else {
            edits.delete(self.end..end);
        }
    }

    fn finish(&self, edits: &mut Edits) {
        if let Some(from) = self.leading {
            edits.delete(from..self.end);
        }
    }
}
