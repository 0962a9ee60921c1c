//! Writes a document as JSON.

use std::borrow::Cow;
use std::collections::HashSet;

use super::converted::{Converted, Duplicate};
use super::document::{Document, Item};
use super::error::YamlError;
use super::scalar::{Value, is_merge, resolve};

/// The maximum depth of the JSON, with all aliases: that of Go's `encoding/json`.
const MAX_DEPTH: usize = 10_000;
/// The maximum depth of merges: mappings that are merged into one that is merged itself, and so on.
const MAX_MERGES: usize = 16;
/// The maximum number of reported duplicate keys.
const MANY: usize = 16;

/// Writes a document. It does not recurse, because aliases can make a document much deeper than its text.
pub(super) struct Writer<'d, 't> {
    document: &'d Document<'t>,
    limit: usize,
    out: Vec<u8>,
    duplicates: Vec<Duplicate>,
    /// The open collections, outermost first.
    open: Vec<Open<'d>>,
    /// Open aliases: their positions, and the number of collections that were open before each.
    aliases: Vec<(u32, usize)>,
    /// The same positions, as a set.
    entered: HashSet<u32>,
    /// The number of aliases that are being merged.
    merging: usize,
    counts: Counts,
}

/// An open collection.
enum Open<'d> {
    /// The next element and the end.
    Sequence { next: u32, end: u32, is_first: bool },
    /// The remaining members, in reverse order.
    Mapping { members: Vec<Member<'d>>, is_first: bool },
}

/// A member of a mapping.
struct Member<'d> {
    key: Cow<'d, str>,
    kind: Kind,
    value: u32,
    /// The alias through which it was merged.
    through: Option<u32>,
}

/// The origin of members that a `<<` merges.
#[derive(Clone, Copy, Default)]
struct Merged {
    through: Option<u32>,
    /// The number of merges between them and the mapping that is written.
    depth: usize,
}

/// The identity of a key. Two different keys can have the same text in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bool,
    Int,
}

/// The number of nodes that were read, and the number of those that were read through aliases.
#[derive(Default)]
struct Counts {
    all: usize,
    aliased: usize,
}

// === impl Writer ===

impl<'d, 't> Writer<'d, 't> {
    pub(super) fn new(document: &'d Document<'t>, limit: usize) -> Self {
        Self {
            document,
            limit,
            out: Vec::new(),
            duplicates: Vec::new(),
            open: Vec::new(),
            aliases: Vec::new(),
            entered: HashSet::new(),
            merging: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn write(mut self) -> Result<Converted, YamlError> {
        self.count()?;
        self.node(0)?;
        loop {
            // The target of an alias has ended.
            while let Some((at, outside)) = self.aliases.last()
                && *outside >= self.open.len()
            {
                self.entered.remove(at);
                self.aliases.pop();
            }
            let outside = self.open.len();
            let Some(open) = self.open.last_mut() else { break };
            match open {
                Open::Sequence { next, end, .. } if next == end => {
                    self.out.push(b']');
                    self.open.pop();
                }
                Open::Sequence { next, is_first, .. } => {
                    let at = *next;
                    *next = self.document.behind(at);
                    if !std::mem::replace(is_first, false) {
                        self.out.push(b',');
                    }
                    self.node(at)?;
                }
                Open::Mapping { members, is_first } => {
                    let Some(member) = members.pop() else {
                        self.out.push(b'}');
                        self.open.pop();
                        continue;
                    };
                    if !std::mem::replace(is_first, false) {
                        self.out.push(b',');
                    }
                    text(&mut self.out, &member.key);
                    self.out.push(b':');
                    if let Some(alias) = member.through {
                        self.enter(alias, outside)?;
                    }
                    self.node(member.value)?;
                }
            }
        }
        self.duplicates.sort_by_key(|duplicate| duplicate.line);
        Ok(Converted { json: self.out, duplicates: self.duplicates })
    }

    /// Writes a scalar, or begins a collection.
    fn node(&mut self, mut at: u32) -> Result<(), YamlError> {
        let outside = self.open.len();
        self.count()?;
        while let Item::Alias(target) = self.document.item(at) {
            self.enter(at, outside)?;
            at = target;
            self.count()?;
        }
        match self.document.item(at) {
            Item::Sequence(end) => {
                self.out.push(b'[');
                self.begin(Open::Sequence { next: at + 1, end, is_first: true })?;
            }
            Item::Mapping(_) => {
                self.out.push(b'{');
                let mut members = Vec::new();
                self.members(at, Merged::default(), &mut members)?;
                let members = self.last_first(members)?;
                self.begin(Open::Mapping { members, is_first: true })?;
            }
            Item::Scalar(..) | Item::Unescaped(..) | Item::Alias(_) => {
                let document = self.document;
                match document.scalar_at(at).map_or(Ok(Value::Null), resolve)? {
                    Value::Null => self.out.extend_from_slice(b"null"),
                    Value::Bool(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
                    Value::Int(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
                    Value::Uint(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
                    Value::Float(number) => self.out.extend_from_slice(float(number)?.as_bytes()),
                    Value::Text(value) => text(&mut self.out, value),
                }
            }
        }
        if self.out.len() > self.limit { Err(YamlError::TooLarge) } else { Ok(()) }
    }

    fn begin(&mut self, open: Open<'d>) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        self.open.push(open);
        Ok(())
    }

    /// Follows the alias at `at`.
    fn enter(&mut self, at: u32, outside: usize) -> Result<(), YamlError> {
        if !self.entered.insert(at) {
            return Err(YamlError::Cycle);
        }
        if self.aliases.len() >= MAX_DEPTH {
            return Err(YamlError::TooLarge);
        }
        self.aliases.push((at, outside));
        Ok(())
    }

    /// The members of the mapping at `at`, in the order of the text (`mapping` in yaml/v2's `decode.go`).
    fn members(&mut self, at: u32, merged: Merged, members: &mut Vec<Member<'d>>) -> Result<(), YamlError> {
        let (mut key, end) = (at + 1, self.document.behind(at));
        while key < end {
            let value = self.document.behind(key);
            if self.document.scalar_at(key).is_some_and(is_merge) {
                self.merge(value, merged, members)?;
            } else {
                let (kind, key) = self.key(key)?;
                members.push(Member { key, kind, value, through: merged.through });
            }
            key = self.document.behind(value);
        }
        Ok(())
    }

    /// Sorts members for writing. Of members with the same key, the last one is used, even if it is an earlier one merged later.
    fn last_first(&mut self, mut members: Vec<Member<'d>>) -> Result<Vec<Member<'d>>, YamlError> {
        // The sort is stable, so the last one comes first.
        members.reverse();
        members.sort_by(|one, other| other.key.cmp(&one.key));
        for pair in members.windows(2).filter(|pair| pair[0].key == pair[1].key) {
            if pair[0].kind != pair[1].kind {
                return Err(YamlError::Ambiguous("a key that occurs both as a string and as another type"));
            }
            if self.duplicates.len() < MANY {
                let line = self.document.line(pair[0].value);
                self.duplicates.push(Duplicate { key: pair[0].key.clone().into_owned(), line });
            }
        }
        members.dedup_by(|later, kept| later.key == kept.key);
        Ok(members)
    }

    fn merge(&mut self, at: u32, merged: Merged, members: &mut Vec<Member<'d>>) -> Result<(), YamlError> {
        let Item::Sequence(end) = self.document.item(at) else {
            return self.merge_one(at, merged, members);
        };
        let (mut maps, mut map) = (Vec::new(), at + 1);
        while map < end {
            maps.push(map);
            map = self.document.behind(map);
        }
        // Earlier ones take precedence.
        maps.into_iter().rev().try_for_each(|map| self.merge_one(map, merged, members))
    }

    fn merge_one(&mut self, at: u32, merged: Merged, members: &mut Vec<Member<'d>>) -> Result<(), YamlError> {
        let (map, alias) = match self.document.item(at) {
            Item::Alias(target) => (target, Some(at)),
            _ => (at, None),
        };
        if !matches!(self.document.item(map), Item::Mapping(_)) {
            return Err(YamlError::Merge);
        }
        if merged.depth >= MAX_MERGES {
            return Err(YamlError::TooLarge);
        }
        self.merging += usize::from(alias.is_some());
        self.count()?;
        let merged = Merged { through: alias.or(merged.through), depth: merged.depth + 1 };
        self.members(map, merged, members)?;
        self.merging -= usize::from(alias.is_some());
        Ok(())
    }

    fn key(&mut self, mut at: u32) -> Result<(Kind, Cow<'d, str>), YamlError> {
        self.count()?;
        if let Item::Alias(target) = self.document.item(at) {
            at = target;
        }
        let document = self.document;
        let value = resolve(document.scalar_at(at).ok_or(YamlError::Key)?)?;
        let kind = match value {
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            _ => Kind::Text,
        };
        Ok((kind, value.key()?))
    }

    /// Counts one more node.
    fn count(&mut self) -> Result<(), YamlError> {
        self.counts.all += 1;
        self.counts.aliased += usize::from(self.merging > 0 || !self.aliases.is_empty());
        if self.counts.are_excessive() { Err(YamlError::Aliases) } else { Ok(()) }
    }
}

// === impl Counts ===

impl Counts {
    /// `allowedAliasRatio` in yaml/v2's `decode.go`.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn are_excessive(&self) -> bool {
        const LOW: f64 = 400_000.0;
        const HIGH: f64 = 4_000_000.0;
        let (all, aliased) = (self.all as f64, self.aliased as f64);
        let allowed = 0.99 - 0.89 * ((all.clamp(LOW, HIGH) - LOW) / (HIGH - LOW));
        self.aliased > 100 && self.all > 1000 && aliased / all > allowed
    }
}

/// A number as Go writes it, except for its zeros.
fn float(number: f64) -> Result<String, YamlError> {
    if !number.is_finite() {
        return Err(YamlError::Number(if number.is_nan() { "NaN".to_owned() } else { format!("{number:+}") }));
    }
    let size = number.abs();
    Ok(if size != 0.0 && !(1e-6..1e21).contains(&size) { format!("{number:e}") } else { number.to_string() })
}

/// A JSON string that is also valid YAML 1.1, because the host may read it as YAML.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
