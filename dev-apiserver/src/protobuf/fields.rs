//! The schema: the messages of all kinds, with their fields.

use std::collections::HashMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("fields.txt");

/// The messages whose JSON is not an object with their fields.
const SPECIAL: [&str; 8] =
    ["Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1", "RawExtension", "Duration", "ExtraValue"];

/// All messages, and the message of each kind.
#[derive(Debug, Default)]
pub(super) struct Schema {
    messages: HashMap<&'static str, Message>,
    roots: HashMap<(&'static str, &'static str), &'static str>,
}

/// A message.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) name: &'static str,
    fields: HashMap<u32, Entry>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Entry {
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) count: Count,
    pub(super) kind: Kind,
}

/// How a field is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// A value. Zero is the same as absent.
    One,
    /// A pointer, so zero differs from absent.
    Pointer,
    Many,
    Map,
    /// A message whose fields are fields of the object in JSON.
    Inline,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Bool,
    Bytes,
    Special(&'static str),
    Message(&'static str),
}

// === impl Schema ===

impl Schema {
    /// The schema, which is parsed on first use.
    pub(super) fn get() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self::parse(TABLE))
    }

    pub(super) fn message(&self, name: &str) -> Option<&Message> {
        self.messages.get(name)
    }

    fn message_of(&self, kind: Kind) -> Option<&Message> {
        match kind {
            Kind::Message(name) => self.message(name),
            _ => None,
        }
    }

    pub(super) fn root(&self, api_version: &str, kind: &str) -> Option<&Message> {
        // Every group version has DeleteOptions (`metav1.AddToGroupVersion`).
        let api_version = if kind == "DeleteOptions" { "v1" } else { api_version };
        let found = self.roots.iter().find(|((version, name), _)| *version == api_version && *name == kind);
        self.message(found?.1)
    }

    /// Parses lines `@ VERSION KIND MESSAGE`, `= MESSAGE` and `NUMBER NAME TYPE`.
    fn parse(table: &'static str) -> Self {
        let mut schema = Self::default();
        let mut current = "";
        for line in table.lines() {
            match *line.split(' ').collect::<Vec<_>>().as_slice() {
                ["@", version, kind, message] => {
                    schema.roots.insert((version, kind), message);
                }
                ["=", name] => {
                    current = name;
                    schema.messages.insert(name, Message { name, ..Message::default() });
                }
                [number, name, kind] => {
                    if let (Ok(number), Some(message)) = (number.parse(), schema.messages.get_mut(current)) {
                        message.fields.insert(number, Entry::parse(name, kind));
                    }
                }
                _ => {}
            }
        }
        schema
    }
}

// === impl Message ===

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Entry> {
        self.fields.get(&number)
    }

    /// The field with this name in JSON. It may be part of an inline message.
    pub(super) fn named<'s>(&'s self, schema: &'s Schema, name: &str) -> Option<&'s Entry> {
        let own = self.fields.values().find(|entry| entry.name == name && entry.count != Count::Inline);
        own.or_else(|| {
            let inline = self.fields.values().filter(|entry| entry.count == Count::Inline);
            inline.filter_map(|entry| schema.message_of(entry.kind)).find_map(|message| message.named(schema, name))
        })
    }
}

// === impl Entry ===

impl Entry {
    fn parse(name: &'static str, text: &'static str) -> Self {
        let marks = [('?', Count::Pointer), ('*', Count::Many), ('%', Count::Map), ('^', Count::Inline)];
        let marked = marks.iter().find_map(|(mark, count)| Some((*count, text.strip_prefix(*mark)?)));
        let (count, text) = marked.unwrap_or((Count::One, text));
        let kind = match text {
            "s" => Kind::Text,
            "i" => Kind::Integer,
            "b" => Kind::Bool,
            "y" => Kind::Bytes,
            special if SPECIAL.contains(&special) => Kind::Special(special),
            message => Kind::Message(message),
        };
        Self { name, count, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn the_schema_has_all_kinds() {
        let schema = Schema::get();
        for kind in kinds::all() {
            assert!(schema.root(&kind.api_version(), kind.kind).is_some(), "{}", kind.kind);
        }
    }

    #[test]
    fn the_schema_has_all_messages() {
        let schema = Schema::get();
        for message in schema.messages.values() {
            for entry in message.fields.values() {
                if let Kind::Message(name) = entry.kind {
                    assert!(schema.message(name).is_some(), "{} of {}", entry.name, message.name);
                }
            }
        }
    }
}
