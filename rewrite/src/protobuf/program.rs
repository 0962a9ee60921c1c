//! The positions of names in the protobuf messages of one kind.

use std::fmt;

use crate::Program;
use crate::descriptor::{Descriptor, FieldDescriptor, Holds, KindMessage, Shape};
use crate::program::{Node, Place};

/// The places of one kind, by field numbers. Cheap to copy.
#[derive(Clone, Copy)]
pub struct ProtoProgram(&'static KindProgram);

/// The places of one kind, of requests or of responses.
pub(crate) struct KindProgram {
    /// The API group; empty for the core.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    root: Message,
}

/// A message that can contain a name.
pub(crate) struct Message {
    /// The place of the whole message.
    pub(crate) place: Option<Place>,
    pub(crate) fields: Vec<Field>,
    descriptor: &'static Descriptor,
}

/// A field of a [`Message`].
pub(crate) struct Field {
    pub(crate) number: u32,
    /// The key of the field in JSON, for errors. `None` if JSON omits the message.
    pub(crate) key: Option<&'static str>,
    pub(crate) shape: Shape,
    pub(crate) inside: Inside,
}

/// The content of a field, or of each element of a list.
pub(crate) enum Inside {
    Text(Place),
    Message(Message),
    /// A map: its own place, and places of the values of some keys.
    Entries(Option<Place>, Vec<(Box<str>, Place)>),
    Json(Node),
    Number(Place),
}

/// The direction of the bodies with these places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Requests,
    Responses,
}

/// A place that cannot be reached by field numbers, with the key before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreachable(String);

// === impl ProtoProgram ===

impl ProtoProgram {
    pub(crate) fn of(kind: &'static KindProgram) -> Self {
        Self(kind)
    }

    /// The kind, as in `Deployment`.
    pub(crate) fn kind(self) -> &'static str {
        self.0.kind
    }

    pub(crate) fn root(self) -> &'static Message {
        &self.0.root
    }

    /// Whether an envelope with this type contains such an object. Empty texts match, as in Kubernetes (`copyKindDefaults` in
    /// apimachinery's protobuf.go).
    pub(crate) fn is_for(self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (api_version.is_empty() || (group, version) == (self.0.group, self.0.version))
            && (kind.is_empty() || kind == self.0.kind)
    }
}

impl fmt::Debug for ProtoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProtoProgram({self})")
    }
}

impl fmt::Display for ProtoProgram {
    /// As `apps/v1 Deployment`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KindProgram { group, version, kind, .. } = self.0;
        let slash = if group.is_empty() { "" } else { "/" };
        write!(f, "{group}{slash}{version} {kind}")
    }
}

// === impl KindProgram ===

impl KindProgram {
    /// Finds the numbers of the keys of `program` that matter in requests.
    pub(crate) fn of_requests(message: &KindMessage, program: &Program) -> Result<Self, Unreachable> {
        Self::compile(message, program, Direction::Requests)
    }

    /// The same for responses, in which all of them matter.
    pub(crate) fn of_responses(message: &KindMessage, program: &Program) -> Result<Self, Unreachable> {
        Self::compile(message, program, Direction::Responses)
    }

    fn compile(
        &(group, version, kind, descriptor): &KindMessage,
        program: &Program,
        direction: Direction,
    ) -> Result<Self, Unreachable> {
        Ok(Self { group, version, kind, root: Message::compile(program.root(), descriptor, direction)? })
    }

    pub(crate) fn root(&self) -> &Message {
        &self.root
    }
}

// === impl Message ===

impl Message {
    fn compile(node: &Node, descriptor: &'static Descriptor, direction: Direction) -> Result<Self, Unreachable> {
        let mut message = Self { place: node.place(), fields: Vec::new(), descriptor };
        for (key, member) in node.members().filter(|(_, member)| direction.cares_for(member)) {
            let field = match descriptor.field(key) {
                Some(field) => field,
                None if is_convention(key, member) => continue,
                None => return Err(Unreachable(key.to_owned())),
            };
            let inside = inside(member, field, direction)?;
            message.insert(field.numbers, field, inside);
        }
        // A set of them fits into a word.
        assert!(message.fields.len() <= 64, "a node of a program has no more members");
        Ok(message)
    }

    fn insert(&mut self, numbers: &[u32], field: &'static FieldDescriptor, inside: Inside) {
        let [number, further @ ..] = numbers else { return };
        if further.is_empty() {
            self.fields.push(Field { number: *number, key: Some(field.key), shape: field.shape, inside });
            return;
        }
        let position = self.fields.iter().position(|field| field.number == *number).unwrap_or_else(|| {
            let left_out = Self { place: None, fields: Vec::new(), descriptor: &Descriptor { fields: &[] } };
            let inside = Inside::Message(left_out);
            self.fields.push(Field { number: *number, key: None, shape: Shape::One, inside });
            self.fields.len() - 1
        });
        if let Inside::Message(left_out) = &mut self.fields[position].inside {
            left_out.insert(further, field, inside);
        }
    }

    /// The field with this number, and its position.
    pub(crate) fn field(&self, number: u32) -> Option<(usize, &Field)> {
        let position = self.fields.iter().position(|field| field.number == number)?;
        Some((position, &self.fields[position]))
    }

    /// The number of a field of this message, with or without a place.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.descriptor.number(key)
    }
}

impl Field {
    /// Whether this is the message with the place `place`.
    pub(crate) fn is_message_at(&self, place: Place) -> bool {
        matches!(&self.inside, Inside::Message(message) if message.place == Some(place))
    }
}

fn inside(node: &Node, field: &'static FieldDescriptor, direction: Direction) -> Result<Inside, Unreachable> {
    let unreachable = || Unreachable(field.key.to_owned());
    if field.shape == Shape::Map {
        let values = node.members().filter(|(_, member)| direction.cares_for(member));
        let values = values.map(|(key, member)| Some((key.into(), member.place()?)));
        let values = values.collect::<Option<Vec<_>>>().ok_or_else(unreachable)?;
        return Ok(Inside::Entries(node.place(), values));
    }
    // The place of a whole list is that of its elements, because protobuf has no message around them.
    let (list, node) = match node.element() {
        Some(element) if field.shape == Shape::Many => (node.place(), element),
        _ => (None, node),
    };
    match field.holds {
        Holds::Text => node.place().map(Inside::Text).ok_or_else(unreachable),
        Holds::Json => Ok(Inside::Json(node.clone())),
        Holds::Number => node.place().map(Inside::Number).ok_or_else(unreachable),
        Holds::Message(message) => {
            let mut message = Message::compile(node, message, direction)?;
            message.place = message.place.or(list);
            Ok(Inside::Message(message))
        }
    }
}

/// Whether this is a part of `status.conditions[].message`, which the program looks for in every kind, although some
/// kinds lack it.
fn is_convention(key: &str, node: &Node) -> bool {
    fn is_message(node: &Node) -> bool {
        node.place().is_none_or(|place| place == Place::Message)
            && node.members().all(|(_, member)| is_message(member))
            && node.element().is_none_or(is_message)
    }
    matches!(key, "status" | "conditions" | "message") && is_message(node)
}

// === impl Direction ===

impl Direction {
    /// Whether a node or one below it has a place.
    fn cares_for(self, node: &Node) -> bool {
        let here = node.place().is_some_and(|place| self.cares_for_place(place));
        here || node.members().any(|(_, member)| self.cares_for(member))
            || node.element().is_some_and(|element| self.cares_for(element))
    }

    fn cares_for_place(self, place: Place) -> bool {
        // The envelope has the kind of an object.
        self == Self::Responses || !(place.is_the_hosts() || place == Place::BindingKind || place.is_of_node_ports())
    }
}
