//! A position in a text that only moves forward, over whole tokens.

use super::fault::{Defect, Malformed};
use super::skip;
use super::text::Text;

/// Reads one text from front to back.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// The start of the member or element that was entered last.
    pub(super) member: usize,
    /// The number of open containers.
    pub(super) depth: usize,
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

    /// Continues at `at`, which must be the start or the end of a token.
    pub(super) fn move_to(&mut self, at: usize) {
        self.at = at;
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
    pub(super) fn bump(&mut self) {
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

    /// The error at the next byte.
    #[cold]
    pub(super) fn defect(&self, defect: Defect) -> Malformed {
        Malformed { offset: self.at, defect }
    }
}
