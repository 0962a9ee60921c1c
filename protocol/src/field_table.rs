//! A table of long header fields that recur. Each tunnel sends such a field only once.
//!
//! ```text
//! GET /readyz                                      first request: the agent stores two fields
//! x-atoll-authorization: Bearer eyJhbGciOi...
//! user-agent: karmada-controller-manager/...
//! x-atoll-define: 0 x-atoll-authorization,1 user-agent
//!
//! GET /version                                     once the first request has a response
//! x-atoll-fields: 01
//! ```
//!
//! HPACK (RFC 7541) does this for short fields. But the dynamic table of the encoder of `h2` has 4 KiB, which is enough for three
//! tokens. The encoder never indexes `:path`. Without this table, tokens and targets would be most of the traffic of an idle
//! member of Karmada. QPACK has a similar protocol (RFC 9204, section 2.1.4).
//!
//! The proxy-server refers to a field by its number only after the other end has responded to the request that defined the field.
//! The response shows that the other end has stored it. HTTP/2 opens streams in the order of their identifiers (RFC 9113, section
//! 5.1.1), so a request that names a field arrives before one that gives its number to another field. Both ends have the table
//! for one tunnel, so a table never contains fields of another agent. Virtual clusters share no entries. So the length of a
//! request does not show whether a client of another virtual cluster has sent the same value. But they share the space: a client
//! can make others send their fields again.

use std::collections::HashMap;

use http::header::{ACCEPT, HeaderMap, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use crate::digest::HAVE;
use crate::identity::{CREDENTIAL, GROUPS, USER};
use crate::prefetch::{PREFETCH, is_health_check, is_prefetchable};
use crate::stream::{AUTHORIZATION, CLUSTER};
use crate::{detached, numbers};

/// The fields to store: for each, a number and the name. Only the proxy-server sets it, never a client.
pub const DEFINE: HeaderName = HeaderName::from_static("x-atoll-define");
/// The numbers of stored fields that belong to the request. Each is a digit of `DIGITS` below 32, or two digits. Only the proxy-server
/// sets it, never a client.
pub const FIELDS: HeaderName = HeaderName::from_static("x-atoll-fields");
/// The request target, if it recurs. The `:path` of the stream is then `/`.
pub const TARGET: HeaderName = HeaderName::from_static("x-atoll-target");
/// The capability that an agent announces if it stores fields.
pub const CAPABILITY: &str = "fields";

/// The maximum number of fields in a table: those of about sixty members of Karmada. With [`MAX_LENGTH`], a table has at most 2
/// MiB.
pub const MAX_FIELDS: usize = 1024;
/// The maximum length of the value of a field. A token of a service account has about a thousand bytes.
pub const MAX_LENGTH: usize = 2048;
/// The minimum length of the value of a field. HPACK encodes shorter values well enough.
const MIN_LENGTH: usize = 20;

/// The digits of the numbers of fields, those that are short in HPACK first.
const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
/// Numbers below this one have one digit.
const ONE_DIGIT: usize = 32;

/// The fields that recur.
const RECURRING: [HeaderName; 9] =
    [AUTHORIZATION, TARGET, ACCEPT, USER_AGENT, PREFETCH, HAVE, USER, GROUPS, CREDENTIAL];

/// A request refers to a field that is not stored, or the format of a reference is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed reference to stored header fields on the tunnel")]
pub struct MalformedFields;

/// The table of the end that sends requests.
#[derive(Debug, Default)]
pub struct Encoder {
    entries: HashMap<Key, Entry>,
    /// The number of requests so far.
    steps: u64,
}

/// The fields that a request defines. When the other end responds to the request, it has stored them. Each has the step at which
/// it got its number.
#[derive(Debug, Default)]
#[must_use]
pub struct Definition(Vec<(Key, u64)>);

/// The table of the end that receives requests.
#[derive(Debug, Default)]
pub struct Decoder {
    fields: Vec<Option<Field>>,
}

/// A header field of a request to this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    cluster: Option<HeaderValue>,
    field: Field,
}

/// A header field.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Field {
    name: HeaderName,
    value: HeaderValue,
}

#[derive(Debug)]
struct Entry {
    number: usize,
    /// The step at which it got the number.
    since: u64,
    /// Whether the other end has stored it.
    is_stored: bool,
    /// The step of its last use.
    used: u64,
}

// === impl Encoder ===

impl Encoder {
    /// Removes the fields that the other end has stored from the head of a request. Call this in the order in which the requests
    /// are sent.
    pub fn encode(&mut self, request: &mut Request<()>) -> Definition {
        self.steps += 1;
        move_target(request);
        let (mut known, mut definitions, mut definition) = (String::new(), Vec::new(), Definition::default());
        let cluster = request.headers().get(CLUSTER).cloned();
        for name in RECURRING {
            let Some(field) = field(request.headers(), &name) else { continue };
            let key = Key { cluster: cluster.clone(), field };
            let entry = self.entry(&key);
            if entry.is_stored {
                write_number(&mut known, entry.number);
                request.headers_mut().remove(name);
            } else {
                definitions.push(format!("{} {name}", entry.number));
                let since = entry.since;
                definition.0.push((key, since));
            }
        }
        for (name, text) in [(FIELDS, known), (DEFINE, definitions.join(","))] {
            if !text.is_empty() {
                let value = HeaderValue::try_from(text).expect("digits and names are a header value");
                request.headers_mut().insert(name, value);
            }
        }
        definition
    }

    /// Records that the other end has responded to the request, and so has stored its fields.
    pub fn stored(&mut self, definition: Definition) {
        for (key, since) in definition.0 {
            // By now, the number may belong to another field, and the field may have another number.
            if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.since == since) {
                entry.is_stored = true;
            }
        }
    }

    /// Returns the entry of a field. If the table is full, a new entry replaces the least recently used one.
    fn entry(&mut self, key: &Key) -> &Entry {
        if !self.entries.contains_key(key) {
            let number = if self.entries.len() < MAX_FIELDS {
                self.entries.len()
            } else {
                let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
                let oldest = oldest.expect("a full table is not empty");
                self.entries.remove(&oldest).expect("it was found").number
            };
            let entry = Entry { number, since: self.steps, is_stored: false, used: self.steps };
            self.entries.insert(key.detached(), entry);
        }
        let entry = self.entries.get_mut(key).expect("it was inserted");
        entry.used = self.steps;
        entry
    }
}

// === impl Key ===

impl Key {
    fn detached(&self) -> Self {
        Self { cluster: self.cluster.as_ref().map(detached::value), field: self.field.detached() }
    }
}

// === impl Field ===

impl Field {
    fn detached(&self) -> Self {
        Self { name: self.name.clone(), value: detached::value(&self.value) }
    }
}

impl std::fmt::Debug for Field {
    /// The value may be a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: [redacted]", self.name)
    }
}

/// Moves a target that recurs to a header.
fn move_target(request: &mut Request<()>) {
    let recurs = |request: &Request<()>| {
        let path = request.uri().path();
        is_health_check(request.method(), path) || is_prefetchable(path)
    };
    if request.method() == Method::CONNECT {
        return;
    }
    let (mut uri, mut headers) = (std::mem::take(request.uri_mut()), std::mem::take(request.headers_mut()));
    let has_numbers = numbers::split(&mut uri, &mut headers);
    (*request.uri_mut(), *request.headers_mut()) = (uri, headers);
    if !has_numbers && !recurs(request) {
        return;
    }
    let target = request.uri().path_and_query().and_then(|target| HeaderValue::from_str(target.as_str()).ok());
    if let (Some(target), Some(root)) = (target, with_target(request.uri(), PathAndQuery::from_static("/"))) {
        request.headers_mut().insert(TARGET, target);
        *request.uri_mut() = root;
    }
}

/// A field that may be stored.
fn field(headers: &HeaderMap, name: &HeaderName) -> Option<Field> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|value| (MIN_LENGTH..=MAX_LENGTH).contains(&value.len()))?;
    values.next().is_none().then(|| Field { name: name.clone(), value: value.clone() })
}

fn with_target(uri: &Uri, target: PathAndQuery) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).ok()
}

// === impl Definition ===

impl Definition {
    /// Whether the request defines nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends the digits of a number.
fn write_number(text: &mut String, number: usize) {
    let digits = match number.checked_sub(ONE_DIGIT) {
        None => &[number][..],
        Some(rest) => &[ONE_DIGIT + rest / DIGITS.len(), rest % DIGITS.len()],
    };
    text.extend(digits.iter().map(|digit| char::from(DIGITS[*digit])));
}

/// The inverse of [`write_number`]: the number that begins with this digit.
fn read_number<'a>(first: u8, rest: &mut impl Iterator<Item = &'a u8>) -> Option<usize> {
    let value = |digit: u8| DIGITS.iter().position(|one| *one == digit);
    let first = value(first)?;
    match first.checked_sub(ONE_DIGIT) {
        None => Some(first),
        Some(high) => Some(ONE_DIGIT + high * DIGITS.len() + value(*rest.next()?)?),
    }
}

// === impl Decoder ===

impl Decoder {
    /// The inverse of [`Encoder::encode`]. Call this in the order in which the requests arrive.
    pub fn decode<B>(&mut self, request: &mut Request<B>) -> Result<(), MalformedFields> {
        if let Some(definitions) = request.headers_mut().remove(DEFINE) {
            for definition in definitions.to_str().map_err(|_| MalformedFields)?.split(',') {
                let (number, name) = definition.split_once(' ').ok_or(MalformedFields)?;
                let name = RECURRING.into_iter().find(|one| one.as_str() == name).ok_or(MalformedFields)?;
                let field = field(request.headers(), &name).ok_or(MalformedFields)?;
                let number: usize = number.parse().map_err(|_| MalformedFields)?;
                if number >= MAX_FIELDS {
                    return Err(MalformedFields);
                }
                if number >= self.fields.len() {
                    self.fields.resize(number + 1, None);
                }
                self.fields[number] = Some(field.detached());
            }
        }
        if let Some(references) = request.headers_mut().remove(FIELDS) {
            let mut digits = references.as_bytes().iter();
            while let Some(digit) = digits.next() {
                let number = read_number(*digit, &mut digits).ok_or(MalformedFields)?;
                let Field { name, value } = self.fields.get(number).cloned().flatten().ok_or(MalformedFields)?;
                if request.headers_mut().insert(name, value).is_some() {
                    return Err(MalformedFields);
                }
            }
        }
        if let Some(target) = request.headers_mut().remove(TARGET) {
            let target = PathAndQuery::try_from(target.as_bytes()).map_err(|_| MalformedFields)?;
            *request.uri_mut() = with_target(request.uri(), target).ok_or(MalformedFields)?;
        }
        let (mut uri, mut headers) = (std::mem::take(request.uri_mut()), std::mem::take(request.headers_mut()));
        let restored = numbers::restore(&mut uri, &mut headers);
        (*request.uri_mut(), *request.headers_mut()) = (uri, headers);
        restored.map_err(|_| MalformedFields)
    }
}

#[cfg(test)]
mod tests;
