//! What the agent must know about an object of the host to share it: its name, its version, its labels, and the field that
//! decides to which virtual cluster it belongs.
//!
//! One pass finds all of this. The rest of the object is skipped, and only checked against the grammar. [`frame`] reads a
//! frame of a watch in JSON, and [`Facts::read`] reads an item of a list.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use kube_wire::watch::EventType;

use crate::json::{Cursor, Edits, Fault, Malformed, Outcome, Step, Text};
use crate::view::{Bookmark, bookmark_in};

/// A frame of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// ADDED, MODIFIED or DELETED.
    Change {
        /// The type.
        event: EventType,
        /// The position of the object in the frame.
        object: Range<usize>,
        /// What is known about the object.
        facts: Facts<'a>,
    },
    /// BOOKMARK.
    Bookmark(Bookmark),
    /// ERROR.
    Error {
        /// The position of the `Status` in the frame.
        status: Range<usize>,
    },
}

/// What is known about an object. Positions are offsets from the start of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// `metadata.namespace`. Empty if the object is cluster-scoped.
    pub namespace: Cow<'a, str>,
    /// `metadata.name`.
    pub name: Cow<'a, str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Cow<'a, str>,
    /// `metadata.labels`, in the order of the object.
    pub labels: Vec<Label<'a>>,
    /// The string at the requested path.
    pub owner: Option<Cow<'a, str>>,
    /// The position of `metadata`.
    pub metadata_at: Range<usize>,
    /// The position of `metadata.resourceVersion`, without its quotes.
    pub resource_version_at: Range<usize>,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its key.
    pub key: Cow<'a, str>,
    /// Its value.
    pub value: Cow<'a, str>,
}

/// The host has sent something that is not an object, or not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// It is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A field is missing, or is not of the right type.
    #[error("the host's object has no valid {field}")]
    Missing {
        /// The path of the field.
        field: &'static str,
    },
    /// A field occurs twice. It is not known which one the host's clients read.
    #[error("the host's object has {field} twice")]
    Duplicate {
        /// The path of the field.
        field: &'static str,
    },
}

/// Reads a frame of a watch. `owner` is the path of the field that decides to which virtual cluster an object belongs. It
/// can be empty.
pub fn frame<'a>(text: &'a [u8], owner: &[&str]) -> Result<Frame<'a>, FactsError> {
    let mut cursor = Cursor::new(text, 0, 0);
    let begun = cursor.clone();
    let event = cursor.look_up("type")?.and_then(|event| EventType::parse(&event.decode()));
    let event = event.ok_or(FactsError::Missing { field: "type" })?;
    let mut found = None;
    members(&mut cursor, |key, cursor| {
        if !key.is("object") {
            return Ok(cursor.skip()?);
        }
        let object = match event {
            EventType::Added | EventType::Modified | EventType::Deleted => {
                let (object, facts) = Facts::next(cursor, owner)?;
                Frame::Change { event, object, facts }
            }
            EventType::Bookmark => {
                cursor.skip()?;
                Frame::Bookmark(bookmark(&begun)?)
            }
            EventType::Error => {
                cursor.peek()?;
                let start = cursor.at();
                cursor.skip()?;
                Frame::Error { status: start..cursor.at() }
            }
        };
        once(&mut found, object, "object")
    })?;
    cursor.finish()?;
    found.ok_or(FactsError::Missing { field: "object" })
}

// === impl FactsError ===

impl Fault for FactsError {
    /// The field is part of the error.
    fn within(self, _: Step<'_>) -> Self {
        self
    }
}

// === impl Facts ===

impl<'a> Facts<'a> {
    /// Reads an object.
    pub fn read(text: &'a [u8], owner: &[&str]) -> Result<Self, FactsError> {
        let mut cursor = Cursor::new(text, 0, 0);
        let (_, facts) = Self::next(&mut cursor, owner)?;
        cursor.finish()?;
        Ok(facts)
    }

    /// Reads the object that is the next token. Returns its position, too.
    fn next(cursor: &mut Cursor<'a>, owner: &[&str]) -> Result<(Range<usize>, Self), FactsError> {
        cursor.peek()?;
        let start = cursor.at();
        let mut metadata = None;
        let mut found = None;
        members(cursor, |key, cursor| {
            if key.is("metadata") {
                let read = Metadata::next(cursor, start)?;
                return once(&mut metadata, read, "metadata");
            }
            match owner {
                [first, rest @ ..] if key.is(first) => {
                    if let Some(owner) = string_at(cursor, rest)? {
                        once(&mut found, owner, "the field of its owner")?;
                    }
                    Ok(())
                }
                _ => Ok(cursor.skip()?),
            }
        })?;
        let metadata = metadata.ok_or(FactsError::Missing { field: "metadata" })?;
        let version = metadata.resource_version.ok_or(FactsError::Missing { field: "metadata.resourceVersion" })?;
        let facts = Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.ok_or(FactsError::Missing { field: "metadata.name" })?,
            resource_version_at: version.start - start..version.range().end - start,
            resource_version: version.decode(),
            labels: metadata.labels.unwrap_or_default(),
            owner: found,
            metadata_at: metadata.at,
        };
        Ok((start..cursor.at(), facts))
    }
}

/// The metadata of an object.
#[derive(Default)]
struct Metadata<'a> {
    at: Range<usize>,
    namespace: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    resource_version: Option<Text<'a>>,
    labels: Option<Vec<Label<'a>>>,
}

// === impl Metadata ===

impl<'a> Metadata<'a> {
    /// Reads the metadata that is the next token, in an object that begins at `start`.
    fn next(cursor: &mut Cursor<'a>, start: usize) -> Result<Self, FactsError> {
        let mut metadata = Self::default();
        cursor.peek()?;
        let begun = cursor.at();
        members(cursor, |key, cursor| match &*key.bytes() {
            b"namespace" => {
                let namespace = string(cursor, "metadata.namespace")?.decode();
                once(&mut metadata.namespace, namespace, "metadata.namespace")
            }
            b"name" => {
                let name = string(cursor, "metadata.name")?.decode();
                once(&mut metadata.name, name, "metadata.name")
            }
            b"resourceVersion" => {
                let version = string(cursor, "metadata.resourceVersion")?;
                once(&mut metadata.resource_version, version, "metadata.resourceVersion")
            }
            b"labels" => {
                let labels = strings(cursor, "metadata.labels")?;
                once(&mut metadata.labels, labels, "metadata.labels")
            }
            _ => Ok(cursor.skip()?),
        })?;
        metadata.at = begun - start..cursor.at() - start;
        Ok(metadata)
    }
}

/// The bookmark of a frame, which must have a version.
fn bookmark(frame: &Cursor<'_>) -> Result<Bookmark, FactsError> {
    let bookmark = bookmark_in(frame)?;
    if bookmark.resource_version.is_empty() {
        return Err(FactsError::Missing { field: "metadata.resourceVersion" });
    }
    Ok(bookmark)
}

/// The string at a path in the value that is the next token. `None` if there is none.
fn string_at<'a>(cursor: &mut Cursor<'a>, path: &[&str]) -> Result<Option<Cow<'a, str>>, FactsError> {
    let Some((first, rest)) = path.split_first() else {
        if cursor.peek()? == b'"' {
            return Ok(Some(cursor.string()?.decode()));
        }
        cursor.skip()?;
        return Ok(None);
    };
    if cursor.peek()? != b'{' {
        cursor.skip()?;
        return Ok(None);
    }
    let mut found = None;
    members(cursor, |key, cursor| {
        if !key.is(first) {
            return Ok(cursor.skip()?);
        }
        match string_at(cursor, rest)? {
            Some(owner) => once(&mut found, owner, "the field of its owner"),
            None => Ok(()),
        }
    })?;
    Ok(found)
}

/// Visits the members of the object that is the next token.
fn members<'a>(
    cursor: &mut Cursor<'a>,
    mut visit: impl FnMut(Text<'a>, &mut Cursor<'a>) -> Result<(), FactsError>,
) -> Result<(), FactsError> {
    let mut unchanged = Edits::new();
    cursor.object(&mut unchanged, |cursor, _, key| {
        visit(key, cursor)?;
        Ok::<_, FactsError>(Outcome::Keep)
    })?;
    Ok(())
}

fn string<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Text<'a>, FactsError> {
    match cursor.peek()? {
        b'"' => Ok(cursor.string()?),
        _ => Err(FactsError::Missing { field }),
    }
}

/// A map of strings. `null` is an empty one.
fn strings<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Vec<Label<'a>>, FactsError> {
    let mut entries = Vec::new();
    if cursor.peek()? == b'n' {
        cursor.skip()?;
        return Ok(entries);
    }
    members(cursor, |key, cursor| {
        entries.push(Label { key: key.decode(), value: string(cursor, field)?.decode() });
        Ok(())
    })?;
    Ok(entries)
}

fn once<V>(found: &mut Option<V>, value: V, field: &'static str) -> Result<(), FactsError> {
    match found.replace(value) {
        None => Ok(()),
        Some(_) => Err(FactsError::Duplicate { field }),
    }
}
