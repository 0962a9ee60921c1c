//! A position in a text that only moves forward, over whole tokens.

use std::borrow::Cow;

use super::container::{Cuts, Extent, Outcome};
use super::edit::Edits;
use super::fault::{Defect, Fault, Malformed, Step};
use super::nesting::MAX_DEPTH;
use super::skip;
use super::text::Text;

/// Reads one text from front to back.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// The start of the member or element that was entered last.
    member: usize,
    /// The number of open containers.
    depth: usize,
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    /// Begins at byte `at` of `text`, inside of `depth` containers that the caller has already entered.
    pub fn new(text: &'a [u8], at: usize, depth: usize) -> Self {
        Self { text, at, member: at, depth }
    }

    /// The offset of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The start of the member (its key) or element that was entered last.
    pub fn member(&self) -> usize {
        self.member
    }

    /// The bytes of a range that was read.
    pub fn slice(&self, range: std::ops::Range<usize>) -> &'a [u8] {
        &self.text[range]
    }

    /// The first byte of the next token. Consumes only white space before it.
    #[inline]
    pub fn peek(&mut self) -> Result<u8, Malformed> {
        let (at, byte) = skip::space(self.text, self.at)?;
        self.at = at;
        Ok(byte)
    }

    /// Skips white space. Returns whether the text ends there.
    pub fn is_at_end(&mut self) -> bool {
        let end = self.peek().is_err();
        if end {
            self.at = self.text.len();
        }
        end
    }

    /// Whether the next token is a number or literal at the end of the text, which may continue.
    pub fn is_cut_scalar(&self) -> bool {
        let mut ahead = self.clone();
        !matches!(ahead.peek(), Ok(b'"' | b'{' | b'[') | Err(_)) && ahead.skip().is_ok() && ahead.at == self.text.len()
    }

    /// Whether the next token opens an empty container.
    pub fn is_empty_container(&self) -> bool {
        let mut ahead = self.clone();
        let Ok(b'{' | b'[') = ahead.peek() else { return false };
        ahead.bump();
        matches!(ahead.peek(), Ok(b'}' | b']'))
    }

    /// Checks that only white space follows.
    pub fn finish(&mut self) -> Result<(), Malformed> {
        if self.is_at_end() { Ok(()) } else { Err(self.defect(Defect::TrailingData)) }
    }

    /// Consumes the byte that [`peek`](Self::peek) returned.
    #[inline]
    fn bump(&mut self) {
        self.at += 1;
    }

    /// Consumes `byte`, which must be the next token.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek()? != byte {
            return Err(self.defect(Defect::UnexpectedByte));
        }
        self.bump();
        Ok(())
    }

    /// Reads the string that is the next token.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the result must stay in registers, as in `skip::string`")]
    pub fn string(&mut self) -> Result<Text<'a>, Malformed> {
        self.expect(b'"')?;
        let start = self.at;
        let end = skip::string(self.text, start)?;
        self.at = end.at;
        Ok(Text { raw: &self.text[start..end.at - 1], start, escapes: end.escapes })
    }

    /// Reads the key of a member and the colon behind it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    pub fn key(&mut self) -> Result<Text<'a>, Malformed> {
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// Skips one value of any type.
    pub fn skip(&mut self) -> Result<(), Malformed> {
        self.at = skip::value(self.text, self.at, self.depth)?;
        Ok(())
    }

    /// Visits the members of the object that is the next token. `visit` gets the key, with the cursor before the value, and
    /// must consume exactly that value.
    pub fn object<E: Fault>(
        &mut self,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &mut Edits, Text<'a>) -> Result<Outcome, E>,
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
        mut visit: impl FnMut(&mut Self, &mut Edits, usize) -> Result<Outcome, E>,
    ) -> Result<Extent, E> {
        self.container(b'[', b']', edits, |cursor, edits, index| {
            visit(cursor, edits, index).map_err(|error| error.within(Step::Element(index)))
        })
    }

    /// Visits the members of the next value if it is an object, and keeps them. `visit` gets the key as [`Text::bytes`]. Skips a value of another type.
    pub(crate) fn members<E: Fault>(
        &mut self,
        edits: &mut Edits,
        mut visit: impl FnMut(&[u8], &mut Self, &mut Edits) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.peek()? != b'{' {
            return Ok(self.skip()?);
        }
        self.object(edits, |cursor, edits, key| {
            visit(&key.bytes(), cursor, edits)?;
            Ok::<_, E>(Outcome::Keep)
        })?;
        Ok(())
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
                Ok::<_, Malformed>(Outcome::Keep)
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
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        Ok(elements)
    }

    #[inline]
    fn container<E: From<Malformed>>(
        &mut self,
        open: u8,
        close: u8,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &mut Edits, usize) -> Result<Outcome, E>,
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
                    Outcome::Keep => cuts.kept += 1,
                    Outcome::Remove => {
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

    /// The error at the next byte.
    #[cold]
    fn defect(&self, defect: Defect) -> Malformed {
        Malformed { offset: self.at, defect }
    }
}
