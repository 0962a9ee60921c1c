//! The nodes of a document.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, StructureStyle};

use super::error::YamlError;

/// The maximum depth of flow collections, and of block collections.
const MAX_NESTING: usize = 255;
/// The maximum number of nodes in a document. A node takes up to 60 bytes, for as little as two bytes of text.
pub(super) const MAX_NODES: usize = 500_000;

/// A document in the order of its text. It is compact for any text.
pub(super) struct Document<'t> {
    text: &'t str,
    items: Vec<Item>,
    /// The line on which each item begins.
    lines: Vec<u32>,
    /// Scalars whose value differs from their text.
    unescaped: Vec<String>,
}

/// A node. The index of an item is that after the end of a collection, or that of the target of an alias.
#[derive(Clone, Copy)]
pub(super) enum Item {
    /// A part of the text: its offset and its length.
    Scalar(Tag, u32, u32),
    /// An index into the unescaped scalars.
    Unescaped(Tag, u32),
    Sequence(u32),
    Mapping(u32),
    Alias(u32),
}

/// The tag of a scalar, explicit or implied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag, without quotes.
    Plain,
    /// No tag, in quotes or in a block.
    Quoted,
    Text,
    Bool,
    Int,
    Float,
    Null,
    Merge,
    /// Binary data or a time.
    Ambiguous,
    /// `!`, which makes a plain scalar a string.
    NonSpecific,
    /// Without effect, as in Go.
    Unknown,
}

// === impl Document ===

impl<'t> Document<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, YamlError> {
        if u32::try_from(text.len()).is_err() {
            return Err(YamlError::TooLarge);
        }
        let mut options = Options::default();
        options.flow_nesting_limit = MAX_NESTING;
        options.block_nesting_limit = MAX_NESTING;
        options.set_emit_comments(false);
        let mut document = Self { text, items: Vec::new(), lines: Vec::new(), unescaped: Vec::new() };
        let mut anchors = HashMap::new();
        let mut open: Vec<(usize, StructureStyle)> = Vec::new();
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event?;
            if document.items.len() > MAX_NODES {
                return Err(YamlError::TooLarge);
            }
            let at = number(document.items.len());
            let anchor = match &event {
                Event::Scalar(_, _, anchor, _)
                | Event::SequenceStart(_, anchor, _)
                | Event::MappingStart(_, anchor, _) => *anchor,
                _ => 0,
            };
            if anchor != 0 {
                anchors.insert(anchor, at);
            }
            match event {
                Event::DocumentStart(_, Some(version)) if (version.major, version.minor) != (1, 1) => {
                    return Err(YamlError::Ambiguous("a directive for a YAML version other than 1.1"));
                }
                Event::DocumentEnd => break,
                Event::Scalar(value, style, _, tag) => {
                    let is_in_flow = open.last().is_some_and(|(_, style)| *style == StructureStyle::Flow);
                    if is_in_flow && style == ScalarStyle::Plain {
                        let end = span.byte_range().map_or(text.len(), |range| range.end);
                        check_in_flow(&value, text.get(end..).unwrap_or_default())?;
                    }
                    let item = document.scalar(value, Tag::of(style, tag.as_deref()));
                    document.items.push(item);
                }
                Event::SequenceStart(style, ..) => {
                    open.push((document.items.len(), style));
                    document.items.push(Item::Sequence(at));
                }
                Event::MappingStart(style, ..) => {
                    open.push((document.items.len(), style));
                    document.items.push(Item::Mapping(at));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(Item::Sequence(end) | Item::Mapping(end)) =
                        open.pop().and_then(|(begin, _)| document.items.get_mut(begin))
                    {
                        *end = at;
                    }
                }
                Event::Alias(anchor) => {
                    let target = anchors.get(&anchor).ok_or_else(|| YamlError::Syntax("unknown anchor".to_owned()))?;
                    document.items.push(Item::Alias(*target));
                }
                _ => {}
            }
            document.lines.resize(document.items.len(), number(span.start.line()));
        }
        Ok(document)
    }

    fn scalar(&mut self, value: Cow<'t, str>, tag: Tag) -> Item {
        if let Cow::Borrowed(value) = value {
            let start = (value.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
            if self.text.get(start..).is_some_and(|rest| rest.starts_with(value)) {
                return Item::Scalar(tag, number(start), number(value.len()));
            }
        }
        self.unescaped.push(value.into_owned());
        Item::Unescaped(tag, number(self.unescaped.len() - 1))
    }

    /// Whether the text has no document.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn item(&self, at: u32) -> Item {
        self.items[at as usize]
    }

    pub(super) fn line(&self, at: u32) -> u32 {
        self.lines[at as usize]
    }

    /// The index after the node at `at`.
    pub(super) fn behind(&self, at: u32) -> u32 {
        match self.item(at) {
            Item::Scalar(..) | Item::Unescaped(..) | Item::Alias(_) => at + 1,
            Item::Sequence(end) | Item::Mapping(end) => end,
        }
    }

    /// The tag and the text of the node at `at`, if it is a scalar.
    pub(super) fn scalar_at(&self, at: u32) -> Option<(Tag, &str)> {
        match self.item(at) {
            Item::Scalar(tag, start, length) => Some((tag, &self.text[start as usize..][..length as usize])),
            Item::Unescaped(tag, number) => Some((tag, &self.unescaped[number as usize])),
            Item::Sequence(_) | Item::Mapping(_) | Item::Alias(_) => None,
        }
    }
}

/// Refuses a plain scalar of a flow collection that ends at different places in YAML 1.1 and 1.2. `rest` is the text after it.
fn check_in_flow(value: &str, rest: &str) -> Result<(), YamlError> {
    let is_key = rest.strip_prefix(':').is_some_and(|rest| rest.starts_with([',', '[', ']', '{', '}']));
    if is_key || value.starts_with('?') || value.contains(" :") {
        return Err(YamlError::Ambiguous("a colon or question mark without a space, in brackets or braces,"));
    }
    Ok(())
}

/// An index or a length in a text that is shorter than 4 GiB.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

// === impl Tag ===

impl Tag {
    fn of(style: ScalarStyle, tag: Option<&granit_parser::Tag>) -> Self {
        let Some(tag) = tag else { return if style == ScalarStyle::Plain { Self::Plain } else { Self::Quoted } };
        let tag = format!("{}{}", tag.handle(), tag.suffix());
        match tag.strip_prefix("tag:yaml.org,2002:") {
            Some("str") => Self::Text,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("null") => Self::Null,
            Some("merge") => Self::Merge,
            Some("binary" | "timestamp") => Self::Ambiguous,
            None if tag == "!" => Self::NonSpecific,
            _ => Self::Unknown,
        }
    }
}
