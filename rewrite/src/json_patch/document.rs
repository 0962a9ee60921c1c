//! A JSON text that is parsed only along the paths of a patch.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::error::DoesNotApply;
use crate::json::{Cursor, Edits, Malformed, Outcome, quoted};

/// An absent value.
pub(super) const NULL: Bytes = Bytes::from_static(b"null");

/// The maximum bytes that all copies of one patch may have (`JSONPatchMaxCopyBytes` in apiserver's `server/config.go`).
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// The maximum number of segments of a path. It bounds the parsed depth, and so every recursion here.
const MAX_SEGMENTS: usize = 256;
/// The maximum depth of a comparison of two values.
const MAX_COMPARED: usize = 256;
/// The maximum number of members and elements that one patch may parse: far more than the paths of a patch meet in an
/// object of 1.5 MiB, the limit of etcd.
const MAX_MEMBERS: usize = 1 << 19;
/// The maximum work of one patch, in bytes that are scanned, written or moved: less than a quarter of a second.
const MAX_WORK: usize = 128 * 1024 * 1024;
/// The cost of moving one element of an array.
const ELEMENT: usize = size_of::<Node>();

/// An object that is patched.
pub(super) struct Document {
    root: Node,
    budget: Budget,
}

#[derive(Debug)]
enum Node {
    /// Not parsed.
    Text(Bytes),
    Object(BTreeMap<String, Self>),
    Array(Vec<Self>),
}

/// The remaining budget of one patch.
struct Budget {
    copied: usize,
    members: usize,
    work: usize,
}

// === impl Document ===

impl Document {
    pub(super) fn new(text: Bytes) -> Self {
        let budget = Budget { copied: MAX_COPIED, members: MAX_MEMBERS, work: MAX_WORK };
        Self { root: Node::Text(text), budget }
    }

    pub(super) fn add(&mut self, path: &str, value: Bytes) -> Result<(), DoesNotApply> {
        let value = Node::Text(value);
        match find(&mut self.root, path, &mut self.budget)? {
            (Node::Object(members), key) => drop(members.insert(key, value)),
            (Node::Array(elements), key) if key == "-" => elements.push(value),
            (Node::Array(elements), key) => {
                let at = index(&key, elements.len() + 1)?;
                self.budget.work((elements.len() - at) * ELEMENT)?;
                elements.insert(at, value);
            }
            (Node::Text(_), _) => return Err(DoesNotApply),
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<Bytes, DoesNotApply> {
        let removed = match find(&mut self.root, path, &mut self.budget)? {
            (Node::Object(members), key) => members.remove(&key).ok_or(DoesNotApply)?,
            (Node::Array(elements), key) => {
                let at = index(&key, elements.len())?;
                self.budget.work((elements.len() - at) * ELEMENT)?;
                elements.remove(at)
            }
            (Node::Text(_), _) => return Err(DoesNotApply),
        };
        removed.text(&mut self.budget)
    }

    pub(super) fn replace(&mut self, path: &str, value: Bytes) -> Result<(), DoesNotApply> {
        if path.is_empty() {
            if !value.starts_with(b"{") && !value.starts_with(b"[") {
                return Err(DoesNotApply);
            }
            self.root = Node::Text(value);
            return Ok(());
        }
        match find(&mut self.root, path, &mut self.budget)? {
            (Node::Object(members), key) => drop(members.insert(key, Node::Text(value))),
            (Node::Array(elements), key) => {
                let at = index(&key, elements.len())?;
                elements[at] = Node::Text(value);
            }
            (Node::Text(_), _) => return Err(DoesNotApply),
        }
        Ok(())
    }

    /// A copy of the value at a path.
    pub(super) fn copy(&mut self, path: &str) -> Result<Bytes, DoesNotApply> {
        let text = self.text_at(path)?;
        self.budget.copied = self.budget.copied.checked_sub(text.len()).ok_or(DoesNotApply)?;
        Ok(text)
    }

    pub(super) fn test(&mut self, path: &str, wanted: &Bytes) -> Result<(), DoesNotApply> {
        let found = if path.is_empty() { self.root.text(&mut self.budget)? } else { self.text_at(path)? };
        if are_equal(&found, wanted, 0, &mut self.budget)? { Ok(()) } else { Err(DoesNotApply) }
    }

    pub(super) fn into_text(mut self) -> Result<Bytes, DoesNotApply> {
        self.root.text(&mut self.budget)
    }

    /// The value at a path, or an absent value.
    fn text_at(&mut self, path: &str) -> Result<Bytes, DoesNotApply> {
        let (container, key) = find(&mut self.root, path, &mut self.budget)?;
        let found = match container {
            Node::Object(members) => members.get(&key),
            Node::Array(elements) => Some(&elements[index(&key, elements.len())?]),
            Node::Text(_) => return Err(DoesNotApply),
        };
        found.map_or(Ok(NULL), |found| found.text(&mut self.budget))
    }
}

// === impl Node ===

impl Node {
    /// The node as text. A node that is text already is not copied.
    fn text(&self, budget: &mut Budget) -> Result<Bytes, DoesNotApply> {
        if let Self::Text(text) = self {
            return Ok(text.clone());
        }
        let mut out = Vec::new();
        self.write(&mut out);
        budget.work(out.len())?;
        Ok(out.into())
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => out.extend_from_slice(text),
            Self::Object(members) => {
                out.push(b'{');
                for (number, (key, value)) in members.iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(quoted(key).as_bytes());
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
            Self::Array(elements) => {
                out.push(b'[');
                for (number, value) in elements.iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    value.write(out);
                }
                out.push(b']');
            }
        }
    }

    /// Parses one level. Scalars stay as they are.
    fn open(&mut self, budget: &mut Budget) -> Result<(), DoesNotApply> {
        let Self::Text(text) = self else { return Ok(()) };
        *self = match text.first() {
            Some(b'{') => {
                Self::Object(members_of(text, budget)?.into_iter().map(|(key, text)| (key, Self::Text(text))).collect())
            }
            Some(b'[') => Self::Array(elements_of(text, budget)?.into_iter().map(Self::Text).collect()),
            _ => return Ok(()),
        };
        Ok(())
    }
}

// === impl Budget ===

impl Budget {
    fn work(&mut self, bytes: usize) -> Result<(), DoesNotApply> {
        self.work = self.work.checked_sub(bytes).ok_or(DoesNotApply)?;
        Ok(())
    }

    fn member(&mut self) -> Result<(), DoesNotApply> {
        self.members = self.members.checked_sub(1).ok_or(DoesNotApply)?;
        Ok(())
    }
}

/// The object or array that contains the last segment of a path, and that segment.
fn find<'n>(root: &'n mut Node, path: &str, budget: &mut Budget) -> Result<(&'n mut Node, String), DoesNotApply> {
    let (path, last) = path.rsplit_once('/').ok_or(DoesNotApply)?;
    let mut found = root;
    found.open(budget)?;
    for (number, segment) in path.split('/').skip(1).enumerate() {
        if number >= MAX_SEGMENTS {
            return Err(DoesNotApply);
        }
        let key = decoded(segment);
        found = match found {
            Node::Object(members) => members.get_mut(&key).ok_or(DoesNotApply)?,
            Node::Array(elements) => {
                let at = index(&key, elements.len())?;
                &mut elements[at]
            }
            Node::Text(_) => return Err(DoesNotApply),
        };
        found.open(budget)?;
    }
    Ok((found, decoded(last)))
}

/// The position of one of `length` elements.
fn index(key: &str, length: usize) -> Result<usize, DoesNotApply> {
    let number: i64 = key.parse().map_err(|_| DoesNotApply)?;
    let position = match usize::try_from(number) {
        Ok(position) => Some(position),
        Err(_) => usize::try_from(number.unsigned_abs()).ok().and_then(|back| length.checked_sub(back)),
    };
    position.filter(|position| *position < length).ok_or(DoesNotApply)
}

fn decoded(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Whether two values are equal (`lazyNode.equal` of the library): the order of members does not matter, and scalars are
/// compared as text.
fn are_equal(one: &Bytes, other: &Bytes, depth: usize, budget: &mut Budget) -> Result<bool, DoesNotApply> {
    if one == other {
        return Ok(true);
    }
    if depth >= MAX_COMPARED {
        return Err(DoesNotApply);
    }
    match (one.first(), other.first()) {
        (Some(b'{'), Some(b'{')) => {
            let (one, other) = (members_of(one, budget)?, members_of(other, budget)?);
            if one.len() != other.len() {
                return Ok(false);
            }
            for ((key, value), (other_key, other_value)) in one.iter().zip(&other) {
                if key != other_key || !are_equal(value, other_value, depth + 1, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Some(b'['), Some(b'[')) => {
            let (one, other) = (elements_of(one, budget)?, elements_of(other, budget)?);
            if one.len() != other.len() {
                return Ok(false);
            }
            for (value, other_value) in one.iter().zip(&other) {
                if !are_equal(value, other_value, depth + 1, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The members of the object in a text. Of duplicate keys the last counts, as in Go.
fn members_of(text: &Bytes, budget: &mut Budget) -> Result<BTreeMap<String, Bytes>, DoesNotApply> {
    budget.work(text.len())?;
    let mut members = BTreeMap::new();
    let mut cursor = Cursor::new(text, 0, 0);
    cursor.object(&mut Edits::new(), |cursor, _, key| {
        budget.member()?;
        members.insert(key.decode().into_owned(), value_at(text, cursor)?);
        Ok::<_, DoesNotApply>(Outcome::Keep)
    })?;
    cursor.finish()?;
    Ok(members)
}

/// The elements of the array in a text.
fn elements_of(text: &Bytes, budget: &mut Budget) -> Result<Vec<Bytes>, DoesNotApply> {
    budget.work(text.len())?;
    let mut elements = Vec::new();
    let mut cursor = Cursor::new(text, 0, 0);
    cursor.array(&mut Edits::new(), |cursor, _, _| {
        budget.member()?;
        elements.push(value_at(text, cursor)?);
        Ok::<_, DoesNotApply>(Outcome::Keep)
    })?;
    cursor.finish()?;
    Ok(elements)
}

fn value_at(text: &Bytes, cursor: &mut Cursor<'_>) -> Result<Bytes, Malformed> {
    cursor.peek()?;
    let start = cursor.at();
    cursor.skip()?;
    Ok(text.slice(start..cursor.at()))
}
