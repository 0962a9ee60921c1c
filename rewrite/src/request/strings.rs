//! Strings of a JSON body.

use std::ops::Range;

use super::refusal::{Reason, Refusal};
use crate::json::{Cursor, Text, quoted};

/// The range of a string with its quotes.
pub(super) fn quotes_of(text: &Text<'_>) -> Range<usize> {
    text.start - 1..text.range().end + 1
}

/// The string that is the next value. `None` for `null`, which Go treats as absent.
pub(super) fn string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Refusal> {
    match cursor.peek()? {
        b'"' => Ok(Some(cursor.string()?)),
        b'n' => Ok(cursor.skip().map(|()| None)?),
        _ => Err(Reason::WrongType { expected: "a string" }.into()),
    }
}

/// The same, but `None` also for an empty string.
pub(super) fn non_empty_string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Refusal> {
    Ok(string(cursor)?.filter(|text| !text.raw.is_empty()))
}

/// The members of an object, from (key, value) strings.
pub(super) fn members_of<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members: Vec<_> =
        entries.into_iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    members.join(",")
}
