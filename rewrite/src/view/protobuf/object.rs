//! Handles each place of an object.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::{Envelope, EnvelopeError};

use super::super::object::Reader;
use super::super::pod::{Owned, Tally};
use super::node_ports::NodePorts;
use super::{Kind, METADATA, Part, RAW, Unreadable, behind_magic};
use crate::credential::{ROOT_CERTIFICATE, TOKEN_SECRET};
use crate::descriptor::Shape;
use crate::json::{Cursor, Edits, Fate};
use crate::mapping::{FOREIGN_PREFIX, Shown, identity::Seen};
use crate::node_ports::NodePort;
use crate::program::{self, Place, walk};
use crate::protobuf::{Field, Found, Inside, Message, Splice, toleration};
use crate::view::{Filter, Verdict, View};

/// Reads one object. Unlike in JSON, the whole object is in memory. So the owner is determined first, and `metadata` is handled
/// last, because the managed fields depend on the remaining fields.
pub(super) struct ObjectReader<'v, 'b> {
    /// The decisions, and those for JSON inside.
    pub(super) state: Reader<'v>,
    pub(super) kind: &'v Kind,
    pub(super) splice: Splice<'b>,
    /// The host name that determines the owner of the object: that of its namespace, or its own if it is a Namespace.
    own: &'b [u8],
    is_token: bool,
    is_root_certificate: bool,
    /// Entries of the current node selector and tolerations.
    node_selector: Tally,
    tolerations: Tally,
    pub(super) node_ports: NodePorts,
}

// === impl ObjectReader ===

impl<'v, 'b> ObjectReader<'v, 'b> {
    pub(super) fn new(view: &'v View, kind: &'v Kind, filter: Filter, splice: Splice<'b>) -> Self {
        Self {
            state: Reader::new(view, filter),
            kind,
            splice,
            own: b"",
            is_token: false,
            is_root_certificate: false,
            node_selector: Tally::default(),
            tolerations: Tally::default(),
            node_ports: NodePorts::default(),
        }
    }

    /// Handles an object in its envelope.
    pub(super) fn enveloped(&mut self, part: Part, range: Range<usize>) -> Result<Verdict, Unreadable> {
        let bytes = self.splice.slice(range.clone());
        let message = range.start + behind_magic(bytes)?..range.end;
        if !Envelope::decode(bytes)?.holds_protobuf() {
            return Err(Unreadable::Wrapped);
        }
        let Some(raw) = self.splice.only(&message, RAW)? else { return Ok(self.state.verdict()) };
        let outer = self.splice.enter();
        let verdict = self.object(part, &raw.inside)?;
        self.splice.leave(&raw, outer);
        Ok(verdict)
    }

    /// Handles the message of an object. If it is hidden, its changes are discarded.
    pub(super) fn object(&mut self, part: Part, range: &Range<usize>) -> Result<Verdict, Unreadable> {
        let kind = self.kind;
        self.foresee(kind.root(), range)?;
        if self.state.verdict == Some(Verdict::Foreign) {
            return Ok(Verdict::Foreign);
        }
        self.foresee_node_ports(kind.root(), range)?;
        if part == Part::Whole {
            self.fields(kind.root(), range, |number| number != METADATA)?;
        }
        self.fields(kind.root(), range, |number| number == METADATA)?;
        Ok(self.state.verdict())
    }

    /// Reads what must be known first.
    fn foresee(&mut self, root: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        for field in &root.fields {
            match &field.inside {
                Inside::Text(Place::SecretType) => {
                    self.is_token = self.splice.text(range, Some(field.number))? == TOKEN_SECRET.as_bytes();
                }
                Inside::Message(metadata) if field.number == METADATA => {
                    let Some(found) = self.splice.only(range, METADATA)? else { continue };
                    for field in &metadata.fields {
                        let Inside::Text(place) = field.inside else { continue };
                        let text = self.splice.text(&found.inside, Some(field.number))?;
                        self.foresee_metadata(place, text);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn foresee_metadata(&mut self, place: Place, text: &'b [u8]) {
        match (place, self.state.filter) {
            (Place::OwnNamespace | Place::OwnName, _) if text.is_empty() => return,
            (Place::OwnNamespace, Filter::ByNamespace) | (Place::OwnName, Filter::ByName) => {
                self.state.decide_by(text);
            }
            (Place::ConfigMapName, _) => self.is_root_certificate = text == ROOT_CERTIFICATE.as_bytes(),
            _ => {}
        }
        if matches!(place, Place::OwnNamespace | Place::OwnName) {
            self.own = text;
        }
    }

    /// Handles a message according to its place.
    pub(super) fn message(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        match message.place {
            None | Some(Place::NamespaceMeta) => self.descend(message, range),
            Some(Place::PodSpec) => self.pod_spec(message, range),
            Some(Place::NamespaceSelector) => self.namespace_selector(range),
            Some(Place::Rule | Place::ShownRule) => self.rule(message, range),
            Some(Place::ServicePort) => self.service_port(message, range),
            Some(place) => self.reference(place, message, range),
        }
    }

    /// Handles the content of a message. The depth of the recursion is that of the program, for any body.
    pub(super) fn descend(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        self.fields(message, range, |_| true)
    }

    fn fields(
        &mut self,
        message: &Message,
        range: &Range<usize>,
        wanted: impl Fn(u32) -> bool,
    ) -> Result<(), Unreadable> {
        let mut seen = 0_u64;
        for field in message.fields.iter().filter(|field| wanted(field.number)) {
            if let Inside::Number(place) = field.inside {
                self.number(place, field.number, range)?;
            }
        }
        let holds_bytes = |(_, field): (usize, &Field)| !matches!(field.inside, Inside::Number(_));
        let mut fields = self.splice.fields(range.clone());
        while let Some(found) =
            fields.next(|number| wanted(number) && message.field(number).is_some_and(holds_bytes))?
        {
            let (position, field) = message.field(found.number).expect("only such are asked for");
            // Go would merge the two, and the owner may be in either.
            if field.shape == Shape::One && seen & 1 << position != 0 {
                return Err(EnvelopeError::Repeated(found.number).into());
            }
            seen |= 1 << position;
            if self.field(field, &found, range)? == Fate::Remove {
                self.splice.remove(&found);
            }
        }
        Ok(())
    }

    /// Handles a field of the message at `around`.
    fn field(&mut self, field: &Field, found: &Found, around: &Range<usize>) -> Result<Fate, Unreadable> {
        match &field.inside {
            Inside::Text(place) => return Ok(self.text(*place, found)),
            Inside::Json(node) => self.json(node, found)?,
            Inside::Entries(place, values) => {
                return self.inside(found, |reader| reader.entry(*place, values, &found.inside));
            }
            Inside::Message(message) if message.place == Some(Place::Tolerations) => {
                let read = toleration::read(self.splice.bytes(found))?;
                return Ok(self.tolerations.toleration(&self.state, read.as_ref()));
            }
            Inside::Message(message) if message.place == Some(Place::NamespaceConditions) => {
                let mirrors = self.mirrors(around, found.number)?;
                return self.inside(found, |reader| {
                    reader.namespace_condition(message, mirrors, &found.inside).map(|()| Fate::Keep)
                });
            }
            Inside::Message(message) => {
                return self.inside(found, |reader| reader.message(message, &found.inside).map(|()| Fate::Keep));
            }
            Inside::Number(place) => unreachable!("a {place:?} is not asked for among fields that hold bytes"),
        }
        Ok(Fate::Keep)
    }

    /// Handles a number in the message at `around`.
    fn number(&mut self, place: Place, number: u32, around: &Range<usize>) -> Result<(), Unreadable> {
        match place {
            Place::HealthCheckNodePort => self.node_port(NodePort::HealthCheck, number, around),
            place => unreachable!("no table has a number that is a {place:?}, as a test shows"),
        }
    }

    /// Enters the message in a field.
    pub(super) fn inside(
        &mut self,
        found: &Found,
        show: impl FnOnce(&mut Self) -> Result<Fate, Unreadable>,
    ) -> Result<Fate, Unreadable> {
        let outer = self.splice.enter();
        let fate = show(self)?;
        self.splice.leave(found, outer);
        Ok(fate)
    }

    fn text(&mut self, place: Place, found: &Found) -> Fate {
        if found.is_empty() {
            return Fate::Keep;
        }
        match place {
            Place::OwnNamespace if self.state.filter == Filter::ByNamespace => self.deciding(found),
            Place::OwnName if self.state.filter == Filter::ByName => self.deciding(found),
            Place::OwnNamespace | Place::OwnName | Place::Namespace | Place::AskedNamespace => self.namespace(found),
            Place::Identity => self.identity(found),
            Place::IdentityElement => match self.seen(found) {
                Seen::Own(name) => self.splice.replace(found, name.into()),
                Seen::Foreign => return Fate::Remove,
            },
            Place::Message => self.readable(found),
            Place::OfNode => self.state.decide_by_node(self.splice.bytes(found)),
            Place::LentName => self.state.note_name(self.splice.bytes(found)),
            Place::SecretType | Place::ConfigMapName | Place::OwnGenerateName | Place::NodeName => {}
            place => unreachable!("no table has a text that is a {place:?}, as a test shows"),
        }
        Fate::Keep
    }

    /// The name of a namespace that determines whether the object is visible.
    pub(super) fn deciding(&mut self, found: &Found) {
        if let Some(name) = self.state.decide_by(self.splice.bytes(found)) {
            self.splice.replace(found, name);
        }
    }

    /// The name of a namespace anywhere in the object.
    pub(super) fn namespace(&mut self, found: &Found) {
        let host = self.splice.bytes(found);
        match self.state.view.mapping.shown(host) {
            Shown::As(name) => self.splice.replace(found, name),
            Shown::Unchanged => {}
            Shown::Foreign => self.splice.replace(found, [FOREIGN_PREFIX.as_bytes(), host].concat().into()),
        }
    }

    /// A user or group.
    pub(super) fn identity(&mut self, found: &Found) {
        match self.seen(found) {
            Seen::Own(name) => self.splice.replace(found, name.into()),
            Seen::Foreign => {
                let host = self.splice.bytes(found);
                self.splice.replace(found, [FOREIGN_PREFIX.as_bytes(), host].concat().into());
            }
        }
    }

    fn seen(&self, found: &Found) -> Seen {
        self.state.view.mapping.seen(&String::from_utf8_lossy(self.splice.bytes(found)))
    }

    /// A message.
    pub(super) fn readable(&mut self, found: &Found) {
        let text = String::from_utf8_lossy(self.splice.bytes(found));
        if let Some(readable) = self.state.view.mapping.readable(&text) {
            self.splice.replace(found, readable.into());
        }
    }

    fn pod_spec(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        (self.node_selector, self.tolerations) = (Tally::default(), Tally::default());
        self.descend(message, range)?;
        let mut rest = self.state.owned.rest();
        rest.node_selector = rest.node_selector.max(self.node_selector.rest());
        rest.tolerations = rest.tolerations.max(self.tolerations.rest());
        self.state.owned = Owned::of(rest);
        Ok(())
    }

    /// An entry of a node selector.
    pub(super) fn node_selector(&mut self, key: &[u8]) -> Fate {
        let guarded = self.state.view.guard.entries().iter().any(|entry| entry.key.as_bytes() == key);
        self.node_selector.count(if guarded { Fate::Remove } else { Fate::Keep })
    }

    /// JSON inside of protobuf: managed fields, and the data of a ControllerRevision.
    fn json(&mut self, node: &program::Node, found: &Found) -> Result<(), Unreadable> {
        let text = self.splice.bytes(found);
        if text.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor::new(text, 0, 0);
        let mut edits = Edits::new();
        let mut inner = Reader::new(self.state.view, Filter::Everything).within_annotation();
        inner.owned = Owned::of(self.state.owned.rest());
        walk(&mut inner, node, &mut cursor, &mut edits)?;
        cursor.finish()?;
        self.state.owned = Owned::of(inner.owned.rest());
        inner.conclude(&self.kind.program, &cursor, &mut edits);
        if !edits.is_empty() {
            let mut pieces: Vec<Bytes> = Vec::new();
            edits.splice(&Bytes::copy_from_slice(text), 0..text.len(), &mut pieces);
            self.splice.replace(found, pieces.concat().into());
        }
        Ok(())
    }

    pub(super) fn own(&self) -> &'b [u8] {
        self.own
    }

    /// The replacement for the current credential. `None` if it is not one.
    pub(super) fn certificate(&self, place: Place) -> Option<Bytes> {
        let is_one = match place {
            Place::SecretCertificate => self.is_token,
            _ => self.is_root_certificate,
        };
        self.state.view.certificate.as_ref().filter(|_| is_one).map(|certificate| certificate.pem())
    }

    pub(super) fn is_token(&self) -> bool {
        self.is_token
    }
}
