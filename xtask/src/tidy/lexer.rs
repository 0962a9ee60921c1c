//! Finds which bytes of a Rust file are code, comments, or contents of literals.
//!
//! It lexes only what distinguishes these three (The Rust Reference, "Tokens" and "Comments"). What is *not* here:
//! names, numbers, grammar. Invalid text leads to an open literal or comment, and never to an error: rustc reports it.

/// Two views of one text. In each, everything of another kind is blank, and all lines stay in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Views {
    /// Without comments, and without string and character literals.
    pub(crate) code: String,
    /// Only comments, including doc comments, with their slashes.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

pub(crate) fn views(text: &str) -> Views {
    let mut code = String::with_capacity(text.len());
    let mut comments = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = None;
    while let Some(first) = rest.chars().next() {
        let (kind, len) = token(rest, first, previous);
        let (token, tail) = rest.split_at(len);
        for char in token.chars() {
            let blank = if char == '\n' { '\n' } else { ' ' };
            code.push(if kind == Kind::Code { char } else { blank });
            comments.push(if kind == Kind::Comment { char } else { blank });
        }
        previous = token.chars().next_back();
        rest = tail;
    }
    Views { code, comments }
}

/// Whether a character can be part of a name. Accurate enough to find the end of one.
pub(crate) fn in_name(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

/// The kind and the length in bytes of the first part of `rest`, which has at least one character.
fn token(rest: &str, first: char, previous: Option<char>) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    // The `r` of `for` does not begin a raw string.
    let may_be_literal = !in_name(first) || !previous.is_some_and(in_name);
    match may_be_literal.then(|| string(rest).or_else(|| character(rest))).flatten() {
        Some(len) => (Kind::Literal, len),
        None => (Kind::Code, first.len_utf8()),
    }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = rest[at..].find(['/', '*']) {
        at += found;
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &str) -> Option<usize> {
    let bare = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(content) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", &raw[..hashes]);
            let len = content.find(&end).map_or(content.len(), |at| at + end.len());
            return Some(rest.len() - content.len() + len);
        }
    }
    let content = bare.strip_prefix('"')?;
    Some(rest.len() - content.len() + past_closing(content, '"'))
}

/// A character literal, but not a lifetime or label.
fn character(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('\'')?;
    let opening = rest.len() - content.len();
    let mut chars = content.chars();
    match (chars.next()?, chars.next()) {
        ('\\', _) => Some(opening + past_closing(content, '\'')),
        (char, Some('\'')) if char != '\'' => Some(opening + char.len_utf8() + 1),
        _ => None,
    }
}

/// The number of bytes up to and including the first unescaped `quote`.
fn past_closing(content: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in content.char_indices() {
        if !escaped && char == quote {
            return at + char.len_utf8();
        }
        escaped = !escaped && char == '\\';
    }
    content.len()
}

#[cfg(test)]
mod tests;
