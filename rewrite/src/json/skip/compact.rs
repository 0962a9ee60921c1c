//! Skips whole containers, 64 bytes at a time, if no white space is between their tokens.
//!
//! A scan of one token after another waits for each of them, because the position of a token depends on the previous one. Here,
//! the grammar is checked for all tokens of a block at once, by operations on sets of positions:
//!
//! - What may follow a token depends only on the token. So each rule is a set of bytes, moved by one position, that must be
//!   within another set.
//! - A key and a value differ in what is before them and behind them. An addition moves the marks of opening quotes to the closing
//!   ones, because its carry passes the bits of the string between them.
//! - After a comma, an object needs a key and an array a value. The kind of container changes only at a bracket. So the bytes
//!   between two brackets are checked together, and only brackets, escapes, numbers and literals are visited one by one.
//!
//! This accepts a subset of JSON. If a text is not in it, the caller reads it again, token by token, which finds the error or
//! accepts the white space.

use std::mem::replace;

use super::classes::{Classes, LEN};
use super::scalar::{escape, scalar};
use crate::json::fault::{Defect, Malformed};
use crate::json::nesting::MAX_DEPTH;

/// The result of an attempt.
pub(super) enum Skipped {
    /// The container ends before this offset.
    To(usize),
    /// The text is valid as far as it goes, and ends within the container.
    Cut,
    /// White space, more than 64 levels, or an error.
    Unknown,
}

/// What the next block must know of the previous ones.
struct Scan {
    /// All bits are set if the last byte was inside of a string.
    in_string: u64,
    /// 1 if this string can be a key.
    in_key: u64,
    /// Whether the last byte was a backslash that begins an escape.
    in_escape: bool,
    /// Of the previous block.
    last: Marks,
    /// The open containers, innermost in the lowest bit, which is set for an object. The highest bit that is set stands for
    /// what is around the container.
    open: u64,
}

/// The bytes of a block that decide what the next byte can be.
#[derive(Clone, Copy, Default)]
struct Marks {
    /// `{` and `[`.
    opening: u64,
    /// A value must follow, or the end of a container that has just begun: opening brackets, commas and colons.
    expecting: u64,
    /// A member of an object may follow: `{` and commas.
    members: u64,
    /// The closing quotes of strings that are the first of a member.
    keys: u64,
    /// Numbers and literals.
    plain: u64,
}

/// Skips the container that begins at `start`, inside of `outside` others.
pub(super) fn container(text: &[u8], start: usize, outside: usize) -> Skipped {
    // A container below this level may be too deep.
    if outside + u64::BITS as usize >= MAX_DEPTH {
        return Skipped::Unknown;
    }
    let mut scan = Scan::new();
    let mut copy = [0; LEN];
    for at in (start..).step_by(LEN) {
        let rest = text.get(at..).unwrap_or_default();
        let (block, valid) = if let Some(block) = rest.first_chunk() {
            (block, u64::MAX)
        } else {
            copy[..rest.len()].copy_from_slice(rest);
            (&copy, !(u64::MAX << rest.len()))
        };
        match scan.block(text, at, block, valid) {
            Ok(None) if valid == u64::MAX => {}
            Ok(None) => return Skipped::Cut,
            Ok(Some(end)) => return Skipped::To(end),
            Err(skipped) => return skipped,
        }
    }
    Skipped::Cut
}

// === impl Scan ===

impl Scan {
    fn new() -> Self {
        // Something before the container asks for it.
        let last = Marks { expecting: 1 << (u64::BITS - 1), ..Marks::default() };
        Self { in_string: 0, in_key: 0, in_escape: false, last, open: 1 }
    }

    /// Scans the next block, which is at `base` in the text. Only the `valid` bytes of it are in the text. Returns the offset
    /// behind the container if that ends in the block.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what the next block must know stays in registers")]
    fn block(&mut self, text: &[u8], base: usize, block: &[u8; LEN], valid: u64) -> Result<Option<usize>, Skipped> {
        let classes = Classes::of(block);
        let (mut quotes, mut wrong) = (classes.quotes, 0);
        if classes.rare.is_some() || self.in_escape {
            let rare = classes.rare.unwrap_or_default();
            quotes &= !self.escaped(text, base, rare.backslashes, quotes)?;
            wrong = rare.controls;
        }

        // From the opening quote up to the byte before the closing one.
        let strings = prefix_xor(quotes) ^ self.in_string;
        self.in_string = (strings.cast_signed() >> (u64::BITS - 1)).cast_unsigned();
        wrong &= strings;
        let opened = quotes & strings;
        let outside = !(strings | quotes);
        let opening = classes.opening & outside;
        let closing = classes.closing & outside;
        let colons = classes.colons & outside;
        let commas = classes.commas & outside;
        let expecting = opening | colons | commas;
        let plain = outside & !(expecting | closing);
        let members = (opening & classes.curly) | commas;

        let last = replace(&mut self.last, Marks { opening, expecting, members, keys: 0, plain });
        let after_member = after(last.members, members);
        let (sum, carry) = strings.overflowing_add((opened & after_member) | self.in_key);
        self.in_key = u64::from(carry);
        self.last.keys = sum & !strings;
        let after_key = after(last.keys, self.last.keys);

        let starts = plain & !after(last.plain, plain);
        let others = opening | starts;
        let expected = after(last.expecting, expecting) & !(after(last.opening, opening) & closing);
        wrong |= (expected ^ (opened | others)) | (colons & !after_key);
        // What only objects have, and what only arrays have.
        let pairs = colons;
        let elements = (after_key & !colons) | (after_member & others);

        // Most containers are empty, because of managed fields. They are values like others.
        let empty = opening & (closing >> 1) & !(classes.curly ^ (classes.curly >> 1));
        let mut brackets = (opening | closing) & !(empty | (empty << 1));
        let mut rest = u64::MAX;
        let mut end = None;
        while brackets != 0 {
            let bracket = brackets & brackets.wrapping_neg();
            brackets ^= bracket;
            let before = bracket | (bracket - 1);
            wrong |= self.misplaced(pairs, elements) & rest & before;
            rest = !before;
            let curly = u64::from(classes.curly & bracket != 0);
            if opening & bracket != 0 {
                if self.open.leading_zeros() == 0 {
                    return Err(Skipped::Unknown);
                }
                self.open = self.open << 1 | curly;
            } else {
                if self.open & 1 != curly {
                    return Err(Skipped::Unknown);
                }
                self.open >>= 1;
                if self.open == 1 {
                    end = Some(bracket);
                    break;
                }
            }
        }
        let valid = end.map_or(valid, |bracket| bracket | (bracket - 1));
        wrong |= self.misplaced(pairs, elements) & rest;
        if wrong & valid != 0 {
            return Err(Skipped::Unknown);
        }
        scalars(text, base, starts & valid)?;
        Ok(end.map(|bracket| base + bracket.trailing_zeros() as usize + 1))
    }

    /// The members of pairs and elements that the innermost container cannot have.
    #[inline]
    fn misplaced(&self, pairs: u64, elements: u64) -> u64 {
        let in_object = (self.open & 1).wrapping_neg();
        (elements & in_object) | (pairs & !in_object)
    }

    /// The second bytes of escapes.
    #[inline]
    fn escaped(&mut self, text: &[u8], base: usize, backslashes: u64, quotes: u64) -> Result<u64, Skipped> {
        // Most escapes are quotes, because of managed fields.
        let behind = backslashes << 1;
        let are_quotes = behind & (backslashes | !quotes) == 0;
        if are_quotes && backslashes.leading_zeros() != 0 && !self.in_escape {
            return Ok(behind);
        }
        self.any_escaped(text, base, backslashes)
    }

    /// The same for any escapes. Checks each of them.
    #[cold]
    fn any_escaped(&mut self, text: &[u8], base: usize, mut backslashes: u64) -> Result<u64, Skipped> {
        let mut escaped = u64::from(self.in_escape);
        backslashes &= !escaped;
        self.in_escape = false;
        while backslashes != 0 {
            let at = backslashes.trailing_zeros();
            // It may be behind the container, so it must not count as cut.
            escape(text, base + at as usize).map_err(|_| Skipped::Unknown)?;
            let first = 1 << at;
            self.in_escape = at == u64::BITS - 1;
            escaped |= first << 1;
            backslashes &= !(first | first << 1);
        }
        Ok(escaped)
    }
}

/// The positions after `marks`. `last` has those of the previous block.
#[inline]
fn after(last: u64, marks: u64) -> u64 {
    marks << 1 | last >> (u64::BITS - 1)
}

/// Checks the numbers and literals that begin at `starts`, and the byte after each.
#[inline]
fn scalars(text: &[u8], base: usize, mut starts: u64) -> Result<(), Skipped> {
    while starts != 0 {
        let start = base + starts.trailing_zeros() as usize;
        starts &= starts - 1;
        match scalar(text, start).map(|end| text.get(end)) {
            Ok(Some(b',' | b'}' | b']')) => {}
            Ok(None) | Err(Malformed { defect: Defect::UnexpectedEnd, .. }) => return Err(Skipped::Cut),
            Ok(Some(_)) | Err(_) => return Err(Skipped::Unknown),
        }
    }
    Ok(())
}

/// Bit `n` is the parity of the bits up to `n`: set from each first bit of a pair up to the bit before the second.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}
