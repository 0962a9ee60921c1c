//! Skips what has no structure: escapes, numbers, and the three literals.

use crate::json::fault::{Defect, Malformed};

/// Skips an escape sequence.
pub(super) fn escape(text: &[u8], at: usize) -> Result<usize, Malformed> {
    let wrong = Malformed { offset: at, defect: Defect::Escape };
    let length = match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
        Some(b'u') => 6,
        Some(_) => return Err(wrong),
        None => return Err(end(text)),
    };
    for offset in 2..length {
        match text.get(at + offset) {
            Some(digit) if digit.is_ascii_hexdigit() => {}
            Some(_) => return Err(wrong),
            None => return Err(end(text)),
        }
    }
    Ok(at + length)
}

/// Skips a number or one of the three literals.
pub(super) fn scalar(text: &[u8], at: usize) -> Result<usize, Malformed> {
    match text.get(at) {
        Some(b't') => literal(text, at, b"true"),
        Some(b'f') => literal(text, at, b"false"),
        Some(b'n') => literal(text, at, b"null"),
        _ => number(text, at),
    }
}

fn literal(text: &[u8], at: usize, literal: &[u8]) -> Result<usize, Malformed> {
    let rest = &text[at..];
    if rest.starts_with(literal) {
        Ok(at + literal.len())
    } else if literal.starts_with(rest) {
        Err(end(text))
    } else {
        Err(unexpected(at))
    }
}

/// `-? (0 | [1-9] digit*) (. digit+)? ([eE] [+-]? digit+)?` (RFC 8259, section 6).
fn number(text: &[u8], mut at: usize) -> Result<usize, Malformed> {
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits(text, at)? };
    if text.get(at) == Some(&b'.') {
        at = digits(text, at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = text.get(at) {
            at += 1;
        }
        at = digits(text, at)?;
    }
    Ok(at)
}

fn digits(text: &[u8], at: usize) -> Result<usize, Malformed> {
    let count = text.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    match (count, text.get(at + count)) {
        (0, None) => Err(end(text)),
        (0, Some(_)) => Err(unexpected(at)),
        _ => Ok(at + count),
    }
}

#[cold]
pub(super) fn unexpected(offset: usize) -> Malformed {
    Malformed { offset, defect: Defect::UnexpectedByte }
}

#[cold]
pub(super) fn end(text: &[u8]) -> Malformed {
    Malformed { offset: text.len(), defect: Defect::UnexpectedEnd }
}
