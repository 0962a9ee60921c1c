//! Skips tokens and whole values, which is most of the engine's work.
//!
//! A container without white space is skipped a block at a time (`compact`), and any other one token by token. Both check the
//! whole grammar, so what is skipped needs no trust.
//!
//! Each function maps an offset to an offset, so that the offset stays in a register: each step of a scan depends on the
//! previous one, and a memory access would take as long as the step.

mod classes;
mod compact;
mod scalar;

use compact::Skipped;
use scalar::{end, escape, scalar, unexpected};

use super::block;
use super::fault::{Defect, Malformed};
use super::nesting::Nesting;
use super::text::Escapes;

/// The end of a string.
pub(super) struct StringEnd {
    /// The offset after the closing quote.
    pub(super) at: usize,
    /// Whether there are escapes in it.
    pub(super) escapes: Escapes,
}

/// Skips white space. Returns the next byte and its offset.
#[inline]
pub(super) fn space(text: &[u8], mut at: usize) -> Result<(usize, u8), Malformed> {
    loop {
        match text.get(at) {
            // Most texts have none.
            Some(&byte) if byte > b' ' => return Ok((at, byte)),
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(&byte) => return Ok((at, byte)),
            None => return Err(end(text)),
        }
    }
}

/// Skips a string whose opening quote is before `at`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "a result of three words is returned in memory, which takes longer than most strings"
)]
pub(super) fn string(text: &[u8], mut at: usize) -> Result<StringEnd, Malformed> {
    let mut escapes = Escapes::None;
    loop {
        while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk()) {
            let plain = block::plain_prefix(block);
            at += plain;
            if plain < block::LEN {
                break;
            }
        }
        match text.get(at) {
            Some(b'"') => return Ok(StringEnd { at: at + 1, escapes }),
            Some(b'\\') => {
                escapes = Escapes::Some;
                at = escape(text, at)?;
            }
            Some(0..0x20) => return Err(Malformed { offset: at, defect: Defect::ControlCharacter }),
            // Fewer bytes than a block are left.
            Some(_) => at += 1,
            None => return Err(end(text)),
        }
    }
}

/// Skips one value inside of `depth` containers.
#[inline]
pub(super) fn value(text: &[u8], at: usize, depth: usize) -> Result<usize, Malformed> {
    let (start, byte) = space(text, at)?;
    match byte {
        b'"' => Ok(string(text, start + 1)?.at),
        b'{' | b'[' => container(text, start, depth),
        _ => scalar(text, start),
    }
}

/// Skips the container that begins at `start`.
fn container(text: &[u8], start: usize, depth: usize) -> Result<usize, Malformed> {
    if let Some([b'{', b'}'] | [b'[', b']']) = text[start..].first_chunk() {
        return tokens(text, start, depth);
    }
    match compact::container(text, start, depth) {
        Skipped::To(end) => Ok(end),
        Skipped::Cut => Err(end(text)),
        Skipped::Unknown => tokens(text, start, depth),
    }
}

/// Skips one value token by token, without recursion, so that a hostile text cannot exhaust the stack.
fn tokens(text: &[u8], at: usize, depth: usize) -> Result<usize, Malformed> {
    let mut nesting = Nesting::within(depth);
    let mut at = at;
    'value: loop {
        let (start, byte) = space(text, at)?;
        at = match byte {
            b'"' => string(text, start + 1)?.at,
            b'{' | b'[' => {
                let is_object = byte == b'{';
                let (inside, next) = space(text, start + 1)?;
                if next == if is_object { b'}' } else { b']' } {
                    // The most frequent container, because of managed fields.
                    nesting.check().map_err(|defect| Malformed { offset: start, defect })?;
                    inside + 1
                } else {
                    nesting.open(is_object).map_err(|defect| Malformed { offset: start, defect })?;
                    at = if is_object { key(text, inside, next)? } else { inside };
                    continue 'value;
                }
            }
            _ => scalar(text, start)?,
        };
        // After a value: the next one, or the end of containers.
        while !nesting.is_empty() {
            let (mark, byte) = space(text, at)?;
            match (byte, nesting.in_object()) {
                (b',', true) => {
                    let (start, quote) = space(text, mark + 1)?;
                    at = key(text, start, quote)?;
                    continue 'value;
                }
                (b',', false) => {
                    at = mark + 1;
                    continue 'value;
                }
                (b'}', true) | (b']', false) => {
                    at = mark + 1;
                    nesting.close();
                }
                _ => return Err(unexpected(mark)),
            }
        }
        return Ok(at);
    }
}

/// Skips the key of a member, whose first byte is `quote`, and its colon.
#[inline]
fn key(text: &[u8], start: usize, quote: u8) -> Result<usize, Malformed> {
    if quote != b'"' {
        return Err(unexpected(start));
    }
    let (mark, byte) = space(text, string(text, start + 1)?.at)?;
    if byte == b':' { Ok(mark + 1) } else { Err(unexpected(mark)) }
}

#[cfg(test)]
mod tests;
