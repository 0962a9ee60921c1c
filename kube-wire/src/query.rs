//! A query string that can be read and edited without changing other parameters.
//!
//! [`Query`] keeps the original text. A lookup decodes keys and allocates only for escapes. An edit copies all other pairs
//! byte for byte, because the API server (or a pod behind a proxy subresource) may know keys that this crate does not. Reading
//! follows Go's `url.ParseQuery`, except that pairs which Go drops silently (bad escapes, semicolons) are errors here: if two
//! readers disagree about a selector, a client can bypass it.
//!
//! The typed views are in [`ListOptions`] and [`WriteOptions`].

mod known;
mod options;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::percent::{self, PercentError};

pub use options::{DeleteOptions, ListOptions, WriteOptions, parse_bool};

/// The maximum number of parameters of a query. Each word of a command in a pod is one. Go accepts ten thousand, so
/// this limit leaves room for parameters that are added later.
const MAX_PARAMETERS: usize = 5_000;

/// The part of a URL after `?`, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    raw: Cow<'a, str>,
}

/// One `key=value` of a [`Query`], not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'q> {
    /// Before the first `=`, or all of it.
    pub key: &'q str,
    /// After the first `=`. Empty if there is none, as in Go.
    pub value: &'q str,
}

/// A query string is refused. This is the client's fault: 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// An invalid percent escape, or text that is not UTF-8.
    #[error("query parameter {key:?}: {source}")]
    Encoding {
        /// The key, not decoded.
        key: String,
        /// What is wrong.
        source: PercentError,
    },
    /// An unescaped `;`. Go drops such a pair, and other parsers split it.
    #[error("query parameter {key:?}: a semicolon must be percent-encoded")]
    Semicolon {
        /// The key, not decoded.
        key: String,
    },
    /// A key that determines which objects are read occurs more than once.
    #[error("query parameter {key:?} must not be repeated")]
    Repeated {
        /// The key.
        key: &'static str,
    },
    /// Go ignores the whole query if it has more than 10,000 parameters (`parseQuery` in `net/url`), and Kubernetes
    /// ignores the error. So a list would lose its selector, and a dry run would be executed.
    #[error("more than {MAX_PARAMETERS} query parameters")]
    TooMany,
    /// The value is not an integer.
    #[error("query parameter {key:?}: {value:?} is not an integer")]
    NotAnInteger {
        /// The key.
        key: &'static str,
        /// The value, decoded.
        value: String,
    },
}

// === impl Query ===

impl<'a> Query<'a> {
    /// A query of the text after `?`. Any text is accepted. Lookups and [`Query::check`] return errors.
    pub fn new(raw: impl Into<Cow<'a, str>>) -> Self {
        Self { raw: raw.into() }
    }

    /// The current text.
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The same query, owned.
    pub fn into_owned(self) -> Query<'static> {
        Query { raw: Cow::Owned(self.raw.into_owned()) }
    }

    /// The same query, borrowed from this one. Edits of it do not change this one.
    pub fn borrowed(&self) -> Query<'_> {
        Query { raw: Cow::Borrowed(&self.raw) }
    }

    /// All pairs in order. Empty ones (`a&&b`) are skipped.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.raw.split('&').filter(|text| !text.is_empty()).map(Pair::of)
    }

    /// Refuses text that parsers could interpret differently: see [`QueryError::TooMany`], and for each pair
    /// [`QueryError::Encoding`] and [`QueryError::Semicolon`].
    pub fn check(&self) -> Result<(), QueryError> {
        // Go counts empty pairs too.
        if self.raw.bytes().filter(|byte| *byte == b'&').count() >= MAX_PARAMETERS {
            return Err(QueryError::TooMany);
        }
        for pair in self.pairs() {
            pair.decoded_key()?;
            pair.decoded_value()?;
        }
        Ok(())
    }

    /// All values of `key`, decoded and in order.
    pub fn all<'q>(&'q self, key: &'q str) -> impl Iterator<Item = Result<Cow<'q, str>, QueryError>> {
        self.pairs().filter(move |pair| pair.is(key)).map(|pair| pair.decoded_value())
    }

    /// The first value of `key`, which Kubernetes uses if a key is repeated.
    pub fn first(&self, key: &str) -> Result<Option<Cow<'_, str>>, QueryError> {
        self.pairs().find(|pair| pair.is(key)).map(|pair| pair.decoded_value()).transpose()
    }

    /// The value of a `key` that must not be repeated.
    pub fn only(&self, key: &'static str) -> Result<Option<Cow<'_, str>>, QueryError> {
        let mut found = self.pairs().filter(|pair| pair.is(key));
        let Some(pair) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(QueryError::Repeated { key });
        }
        pair.decoded_value().map(Some)
    }

    /// Whether `key` exists.
    pub fn contains(&self, key: &str) -> bool {
        self.pairs().any(|pair| pair.is(key))
    }

    /// Makes `value` the only value of `key`. It replaces the first value, or is appended if there is none.
    pub fn set(&mut self, key: &str, value: &str) {
        let mut placed = false;
        let mut edited = String::with_capacity(self.raw.len() + key.len() + value.len() + 2);
        for (position, text) in self.raw.split('&').enumerate() {
            let ours = !text.is_empty() && Pair::of(text).is(key);
            if ours && placed {
                continue;
            }
            if position > 0 {
                edited.push('&');
            }
            if ours {
                placed = true;
                write_pair(&mut edited, key, value);
            } else {
                edited.push_str(text);
            }
        }
        self.raw = Cow::Owned(edited);
        if !placed {
            self.append(key, value);
        }
    }

    /// Appends a pair, whether the key exists or not.
    pub fn append(&mut self, key: &str, value: &str) {
        let raw = self.raw.to_mut();
        if !raw.is_empty() && !raw.ends_with('&') {
            raw.push('&');
        }
        write_pair(raw, key, value);
    }

    /// Removes all pairs with this key.
    pub fn remove(&mut self, key: &str) {
        if !self.contains(key) {
            return;
        }
        let kept = self.raw.split('&').filter(|text| text.is_empty() || !Pair::of(text).is(key));
        self.raw = Cow::Owned(kept.collect::<Vec<_>>().join("&"));
    }
}

// === impl Pair ===

impl<'q> Pair<'q> {
    fn of(text: &'q str) -> Self {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Self { key, value }
    }

    /// The key, decoded.
    pub fn decoded_key(&self) -> Result<Cow<'q, str>, QueryError> {
        self.decode(self.key)
    }

    /// The value, decoded.
    pub fn decoded_value(&self) -> Result<Cow<'q, str>, QueryError> {
        self.decode(self.value)
    }

    fn decode(&self, text: &'q str) -> Result<Cow<'q, str>, QueryError> {
        if text.contains(';') {
            return Err(QueryError::Semicolon { key: shown(self.key) });
        }
        percent::decode_query(text).map_err(|source| QueryError::Encoding { key: shown(self.key), source })
    }

    /// Whether the key decodes to `key`. As in Go, `false` if the key cannot be decoded.
    fn is(&self, key: &str) -> bool {
        if !self.key.contains(['%', '+']) {
            return self.key == key;
        }
        percent::decode_query(self.key).is_ok_and(|decoded| decoded == key)
    }
}

fn write_pair(out: &mut String, key: &str, value: &str) {
    percent::encode_query(out, key);
    out.push('=');
    percent::encode_query(out, value);
}

/// A client's text for an error message. It is truncated, because it can be as long as a URL.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
