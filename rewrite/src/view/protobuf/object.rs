//! Handles each place of an object.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::{Envelope, EnvelopeError};

use super::super::decision::Decision;
use super::super::error::Unreadable;
use super::super::filter::{Filter, Verdict};
use super::super::key::Key;
use super::super::last_applied::is_of_host;
use super::super::object::{Reader, applied_object};
use super::super::settings::Settings;
use super::super::tally::{Remainders, Tally};
use super::condition::{mirrors, recount};
use super::credential::Credential;
use super::entry::Entry;
use super::envelope::{METADATA, RAW, behind_magic};
use super::kind::{Kind, Part};
use super::names::Names;
use super::node_ports::NodePorts;
use super::reference::References;
use super::rule::rule;
use super::selector::namespace_selector;
use crate::descriptor::Shape;
use crate::json::{Cursor, Edits, Outcome};
use crate::name::{LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL, is_hidden};
use crate::node_ports::NodePort;
use crate::program::{self, Place, walk};
use crate::protobuf::{Field, Found, Inside, Message, Splice, toleration};

/// Reads one object. Unlike in JSON, the whole object is in memory. So the owner is determined first, and `metadata` is handled
/// last, because the managed fields depend on the remaining fields.
pub(in crate::view) struct ObjectReader<'v, 'b> {
    view: &'v Settings,
    kind: &'v Kind,
    names: Names<'v, 'b>,
    decision: Decision<'v>,
    /// The host name that determines the owner of the object: that of its namespace, or its own if it is a Namespace.
    own: &'b [u8],
    credential: Credential,
    /// What is known about the guarded fields so far.
    remainders: Remainders,
    /// Entries of the current node selector and tolerations.
    node_selector: Tally,
    tolerations: Tally,
    node_ports: NodePorts,
    /// The number of mirrors in the conditions of a Namespace, once they were counted.
    mirrors: Option<u64>,
}

// === impl ObjectReader ===

impl<'v, 'b> ObjectReader<'v, 'b> {
    pub(in crate::view) fn new(view: &'v Settings, kind: &'v Kind, filter: Filter, splice: Splice<'b>) -> Self {
        Self {
            view,
            kind,
            names: Names { mapping: &view.mapping, splice },
            decision: Decision::new(view, filter),
            own: b"",
            credential: Credential::default(),
            remainders: Remainders::default(),
            node_selector: Tally::default(),
            tolerations: Tally::default(),
            node_ports: NodePorts::default(),
            mirrors: None,
        }
    }

    /// The changes so far, to which others can be added.
    pub(in crate::view) fn splice(&mut self) -> &mut Splice<'b> {
        &mut self.names.splice
    }

    /// The changes.
    pub(in crate::view) fn into_splice(self) -> Splice<'b> {
        self.names.splice
    }

    /// Handles an object in its envelope.
    pub(in crate::view) fn enveloped(&mut self, part: Part, range: Range<usize>) -> Result<Verdict, Unreadable> {
        let bytes = self.names.splice.slice(range.clone());
        let message = range.start + behind_magic(bytes)?..range.end;
        if !Envelope::decode(bytes)?.holds_protobuf() {
            return Err(Unreadable::Wrapped);
        }
        let Some(raw) = self.names.splice.only(&message, RAW)? else { return Ok(self.decision.verdict(None)) };
        let outer = self.names.splice.enter(&raw);
        let verdict = self.object(part, &raw.inside)?;
        self.names.splice.leave(&raw, outer);
        Ok(verdict)
    }

    /// Handles the message of an object. If it is hidden, its changes are discarded.
    pub(super) fn object(&mut self, part: Part, range: &Range<usize>) -> Result<Verdict, Unreadable> {
        let root = self.kind.root();
        self.scan_ahead(root, range)?;
        if self.decision.is_foreign() {
            return Ok(Verdict::Foreign);
        }
        self.node_ports.scan_ahead(&self.names.splice, root, range)?;
        if part == Part::Whole {
            self.fields(root, range, |number| number != METADATA)?;
        }
        self.fields(root, range, |number| number == METADATA)?;
        Ok(self.decision.verdict(None))
    }

    /// Reads what must be known first.
    fn scan_ahead(&mut self, root: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let splice = &self.names.splice;
        for field in &root.fields {
            match &field.inside {
                Inside::Text(Place::SecretType) => {
                    self.credential.secret_type(splice.text(range, Some(field.number))?);
                }
                Inside::Message(metadata) if field.number == METADATA => {
                    let Some(found) = splice.only(range, METADATA)? else { continue };
                    for field in &metadata.fields {
                        let Inside::Text(place) = field.inside else { continue };
                        let text = splice.text(&found.inside, Some(field.number))?;
                        match (place, self.decision.filter()) {
                            (Place::OwnNamespace | Place::OwnName, _) if text.is_empty() => continue,
                            (Place::OwnNamespace, Filter::ByNamespace) | (Place::OwnName, Filter::ByName) => {
                                self.decision.by_namespace(text);
                            }
                            (Place::ConfigMapName, _) => self.credential.config_map_name(text),
                            _ => {}
                        }
                        if matches!(place, Place::OwnNamespace | Place::OwnName) {
                            self.own = text;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles a message according to its place.
    fn message(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        match message.place {
            None | Some(Place::NamespaceMeta) => self.descend(message, range),
            Some(Place::PodSpec) => self.pod_spec(message, range),
            Some(Place::NamespaceSelector) => namespace_selector(&mut self.names, range),
            Some(Place::Rule | Place::ShownRule) => rule(&mut self.names, message, range),
            Some(Place::ServicePort) => self.node_ports.port(&mut self.names.splice, message, range),
            Some(place) => {
                let about = self.view.about.as_deref();
                References { names: &mut self.names, decision: &mut self.decision, about }.show(place, message, range)
            }
        }
    }

    /// Handles the content of a message. The depth of the recursion is that of the program, for any body.
    fn descend(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
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
        let holds_bytes = |(_, field): &(usize, &Field)| !matches!(field.inside, Inside::Number(_));
        let known = |number| message.field(number).filter(|found| wanted(number) && holds_bytes(found));
        let mut fields = self.names.splice.fields(range.clone());
        while let Some(((position, field), found)) = fields.next_known(known)? {
            // Go would merge the two, and the owner may be in either.
            if field.shape == Shape::One && seen & 1 << position != 0 {
                return Err(EnvelopeError::Repeated(found.number).into());
            }
            seen |= 1 << position;
            if self.field(field, &found, range)? == Outcome::Remove {
                self.names.splice.remove(&found);
            }
        }
        Ok(())
    }

    /// Handles a field of the message at `around`.
    fn field(&mut self, field: &Field, found: &Found, around: &Range<usize>) -> Result<Outcome, Unreadable> {
        match &field.inside {
            Inside::Text(place) => return Ok(self.text(*place, found)),
            Inside::Json(node) => self.json(node, found)?,
            Inside::Entries(place, values) => {
                return self.inside(found, |reader| reader.entry(*place, values, &found.inside));
            }
            Inside::Message(message) if message.place == Some(Place::Tolerations) => {
                let read = toleration::read(self.names.splice.bytes(found))?;
                return Ok(self.tolerations.toleration(&self.view.guard, read.as_ref()));
            }
            Inside::Message(message) if message.place == Some(Place::NamespaceConditions) => {
                let mirrors = match self.mirrors {
                    Some(mirrors) => mirrors,
                    None => *self.mirrors.insert(mirrors(&self.names, around, found.number)?),
                };
                return self.inside(found, |reader| {
                    if !recount(&mut reader.names, mirrors, &found.inside)? {
                        reader.descend(message, &found.inside)?;
                    }
                    Ok(Outcome::Keep)
                });
            }
            Inside::Message(message) => {
                return self.inside(found, |reader| reader.message(message, &found.inside).map(|()| Outcome::Keep));
            }
            Inside::Number(place) => unreachable!("a {place:?} is not asked for among fields that hold bytes"),
        }
        Ok(Outcome::Keep)
    }

    /// Handles a number in the message at `around`.
    fn number(&mut self, place: Place, number: u32, around: &Range<usize>) -> Result<(), Unreadable> {
        match place {
            Place::HealthCheckNodePort => {
                self.node_ports.node_port(&mut self.names.splice, NodePort::HealthCheck, number, around)
            }
            place => unreachable!("no table has a number that is a {place:?}, as a test shows"),
        }
    }

    /// Enters the message in a field.
    fn inside(
        &mut self,
        found: &Found,
        show: impl FnOnce(&mut Self) -> Result<Outcome, Unreadable>,
    ) -> Result<Outcome, Unreadable> {
        let outer = self.names.splice.enter(found);
        let outcome = show(self)?;
        self.names.splice.leave(found, outer);
        Ok(outcome)
    }

    fn text(&mut self, place: Place, found: &Found) -> Outcome {
        if found.is_empty() {
            return Outcome::Keep;
        }
        match (place, self.decision.filter()) {
            (Place::OwnNamespace, Filter::ByNamespace) | (Place::OwnName, Filter::ByName) => {
                self.names.owner_namespace(&mut self.decision, found);
            }
            (Place::OwnNamespace | Place::OwnName | Place::Namespace | Place::ReviewNamespace, _) => {
                self.names.namespace(found);
            }
            (Place::OwnUid, _) => self.names.uid(found),
            (Place::Identity, _) => self.names.identity(found),
            (Place::IdentityElement, _) => return self.names.identity_element(found),
            (Place::Message, _) => self.names.message(found),
            (Place::OfNode, _) => self.decision.by_node(self.names.splice.bytes(found)),
            (Place::ProjectedName, _) => self.decision.note_name(self.names.splice.bytes(found)),
            (Place::SecretType | Place::ConfigMapName | Place::OwnGenerateName | Place::NodeName, _) => {}
            (place, _) => unreachable!("no table has a text that is a {place:?}, as a test shows"),
        }
        Outcome::Keep
    }

    fn pod_spec(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        (self.node_selector, self.tolerations) = (Tally::default(), Tally::default());
        self.descend(message, range)?;
        self.remainders.add(Remainders {
            node_selector: self.node_selector.remainder(),
            tolerations: self.tolerations.remainder(),
        });
        Ok(())
    }

    /// Handles an entry of a map with a place, or of one in which some keys have places.
    fn entry(
        &mut self,
        place: Option<Place>,
        values: &[(Box<str>, Place)],
        range: &Range<usize>,
    ) -> Result<Outcome, Unreadable> {
        let entry = Entry::read(&self.names.splice, range)?;
        match place {
            Some(place @ (Place::OwnLabels | Place::OwnAnnotations)) => return self.own_entry(place, &entry),
            Some(Place::HiddenKeys) if std::str::from_utf8(entry.key).is_ok_and(is_hidden) => {
                return Ok(Outcome::Remove);
            }
            Some(Place::ServiceAnnotations) => {
                self.last_applied(&entry);
                return self.node_ports.annotation(&mut self.names.splice, &entry);
            }
            Some(Place::NodeSelector) => {
                let guarded = self.view.guard.entries().iter().any(|guarded| guarded.key.as_bytes() == entry.key);
                return Ok(self.node_selector.count(if guarded { Outcome::Remove } else { Outcome::Keep }));
            }
            _ => {}
        }
        let known = values.iter().find(|(known, _)| known.as_bytes() == entry.key);
        if let (Some((_, place)), Some(value)) = (known, &entry.value) {
            self.value(*place, value);
        }
        Ok(Outcome::Keep)
    }

    /// A label or annotation of a Namespace.
    fn own_entry(&mut self, place: Place, entry: &Entry<'b>) -> Result<Outcome, Unreadable> {
        let key = String::from_utf8_lossy(entry.key);
        let shown = match place {
            Place::OwnLabels => Key::of_label(&key, self.view.enforces_pod_security),
            _ => Key::of_annotation(&key),
        };
        match shown {
            Key::Hidden => return Ok(Outcome::Remove),
            Key::Itself => match &entry.value {
                Some(value) if key == METADATA_NAME_LABEL => self.names.namespace(value),
                _ => self.last_applied(entry),
            },
            Key::As(shown) => {
                if let Some(found) = entry.found_key(&self.names.splice)? {
                    self.names.splice.replace(&found, shown.into());
                }
            }
        }
        Ok(Outcome::Keep)
    }

    /// An annotation, if it is that of kubectl.
    fn last_applied(&mut self, entry: &Entry<'_>) {
        if let Some(value) = entry.value.as_ref().filter(|_| entry.key == LAST_APPLIED_ANNOTATION.as_bytes()) {
            self.value(Place::LastApplied, value);
        }
    }

    /// The value of an entry with a place.
    fn value(&mut self, place: Place, value: &Found) {
        let text = self.names.splice.bytes(value);
        let shown = match place {
            Place::AutoupdateSpec => {
                self.decision.by_autoupdate(text);
                None
            }
            Place::LastApplied if !self.own.is_empty() && is_of_host(&self.kind.program, self.own, text) => {
                applied_object(self.view, &self.kind.program, &Bytes::copy_from_slice(text)).map(Bytes::from)
            }
            place => self.credential.shown(self.view, place, text),
        };
        if let Some(shown) = shown {
            self.names.splice.replace(value, shown);
        }
    }

    /// JSON inside of protobuf: managed fields, and the data of a ControllerRevision.
    fn json(&mut self, node: &program::Node, found: &Found) -> Result<(), Unreadable> {
        let text = self.names.splice.bytes(found);
        if text.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor::new(text, 0, 0);
        let mut edits = Edits::new();
        let mut inner = Reader::new(self.view, Filter::Everything).within_annotation().knowing(self.remainders);
        walk(&mut inner, node, &mut cursor, &mut edits)?;
        cursor.finish()?;
        self.remainders = inner.remainders();
        inner.conclude(&self.kind.program, &cursor, &mut edits);
        if !edits.is_empty() {
            let mut pieces: Vec<Bytes> = Vec::new();
            edits.splice(&Bytes::copy_from_slice(text), 0..text.len(), &mut pieces);
            self.names.splice.replace(found, pieces.concat().into());
        }
        Ok(())
    }
}
