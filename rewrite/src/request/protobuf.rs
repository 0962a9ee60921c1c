//! Handles each place of an object in protobuf in a request.
//!
//! The decisions are those for JSON. Only the form differs: the entries of a map or list occur one by one, between other fields
//! and in any order, so missing entries are added at the end of the message around them.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::proto;

use super::object::{CLUSTER_BINDING, HOST_BINDING, Writer};
use super::{Reason, Refusal, Report, Request};
use crate::Sink;
use crate::descriptor::Shape;
use crate::json::{Cursor, Edits, Fault as _, Step};
use crate::program::{self, Place, walk};
use crate::protobuf::{Field, Found, Inside, Message, ProtoProgram, Splice};

mod map;
mod namespace;
mod pod;
mod reference;
mod role;
mod rule;
mod selector;

/// `raw` of `runtime.Unknown` (apimachinery's `pkg/runtime/generated.proto`).
const RAW: u32 = 2;
/// `typeMeta` of `runtime.Unknown`, and `kind` in it.
const TYPE_META: u32 = 1;
const KIND: u32 = 2;
/// `SecretTypeServiceAccountToken` in core/v1 types.go.
const TOKEN_SECRET: &[u8] = b"kubernetes.io/service-account-token";

/// Maps one object.
struct Mapper<'r, 'b> {
    request: &'r Request,
    splice: Splice<'b>,
    report: Report,
    pod: pod::PodFields<'r>,
    own: namespace::OwnMaps,
    is_token: bool,
    /// The parked fields of the current ClusterRole.
    aggregation: Option<String>,
    /// The number of permissions that the rules grant so far.
    permissions: u64,
}

/// See [`Request::map_protobuf`].
pub(super) fn map(
    request: &Request,
    program: ProtoProgram,
    body: &Bytes,
    sink: &mut impl Sink,
) -> Result<Report, Refusal> {
    let envelope = Envelope::decode(body).map_err(Reason::from)?;
    if !envelope.holds_protobuf() {
        return Err(Reason::Wrapped.into());
    }
    if !program.is_for(envelope.api_version, envelope.kind) {
        return Err(Reason::WrongKind { expected: program.to_string() }.into());
    }
    let mut mapper = Mapper {
        request,
        splice: Splice::new(body),
        report: Report::default(),
        pod: pod::PodFields::new(request),
        own: namespace::OwnMaps::default(),
        is_token: false,
        aggregation: None,
        permissions: 0,
    };
    if program.kind() == CLUSTER_BINDING {
        mapper.host_kind(MAGIC.len()..body.len())?;
    }
    if let Some(raw) = mapper.find(MAGIC.len()..body.len(), RAW)? {
        mapper.enter(&raw, |mapper, object| mapper.object(program.root(), object))?;
    }
    let Mapper { splice, report, .. } = mapper;
    splice.finish(body, sink);
    Ok(report)
}

// === impl Mapper ===

impl<'b> Mapper<'_, 'b> {
    fn object(&mut self, root: &Message, range: Range<usize>) -> Result<(), Refusal> {
        let kind_of_secret = root.fields.iter().find(|field| matches!(field.inside, Inside::Text(Place::SecretType)));
        if let Some(field) = kind_of_secret {
            let kind = self.find(range.clone(), field.number)?;
            self.is_token = kind.is_some_and(|kind| self.splice.bytes(&kind) == TOKEN_SECRET);
        }
        // It is stored in the metadata, which comes first.
        let aggregation = root.fields.iter().find(|field| field.is_message_at(Place::AggregationRule));
        if let Some(field) = aggregation
            && let Some(found) = self.find(range.clone(), field.number)?
        {
            self.aggregation = Some(role::aggregation_rule(self.splice.bytes(&found))?);
        }
        self.message(root, range)
    }

    /// Replaces the kind in an envelope by that on the host.
    fn host_kind(&mut self, envelope: Range<usize>) -> Result<(), Refusal> {
        let Some(type_meta) = self.find(envelope, TYPE_META)? else { return Ok(()) };
        self.enter(&type_meta, |mapper, range| {
            if let Some(kind) = mapper.find(range, KIND)?.filter(|kind| !kind.is_empty()) {
                mapper.splice.replace(&kind, Bytes::from_static(HOST_BINDING.as_bytes()));
            }
            Ok(())
        })
    }

    /// Handles a message according to its place.
    fn message(&mut self, message: &Message, range: Range<usize>) -> Result<(), Refusal> {
        match message.place {
            None => self.descend(message, &range),
            Some(Place::NamespaceMeta) => self.namespace_meta(message, &range),
            Some(Place::PodSpec) => self.pod_spec(message, &range),
            Some(Place::RoleMeta) => self.role_meta(message, &range),
            Some(Place::Rule) => self.rule(message, &range),
            Some(Place::Tolerations) => self.toleration(range),
            Some(Place::NamespaceSelector) => self.namespace_selector(range),
            Some(
                place @ (Place::Reference
                | Place::BindingTarget
                | Place::BoundObject
                | Place::Subject
                | Place::RoleRef
                | Place::Claim
                | Place::ParentReference
                | Place::EventObject
                | Place::ResourceAttributes),
            ) => self.reference(place, message, &range),
            Some(place) => unreachable!("no table has a message that is a {place:?}, as a test shows"),
        }
    }

    /// Handles the content of a message. The depth of the recursion is that of the program, for any body.
    fn descend(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        let mut seen = 0_u64;
        let mut elements = vec![0; message.fields.len()];
        let mut groups = None;
        let mut fields = self.splice.fields(range.clone());
        while let Some(found) = fields.next(|number| message.field(number).is_some())? {
            let (position, field) = message.field(found.number).expect("only such are asked for");
            let result = match field.shape {
                Shape::One if seen & 1 << position != 0 => Err(Reason::Duplicate.into()),
                Shape::One | Shape::Map => self.field(field, &found),
                Shape::Many => {
                    let number = elements[position];
                    elements[position] += 1;
                    self.field(field, &found).map_err(|refusal| refusal.within(Step::Element(number)))
                }
            };
            seen |= 1 << position;
            if matches!(field.inside, Inside::Text(Place::IdentityElement)) {
                groups = Some(field.number);
            }
            result.map_err(|refusal| match field.key {
                Some(key) => refusal.within(Step::Key(key)),
                None => refusal,
            })?;
        }
        if let Some(number) = groups {
            let mut added = proto::Writer::new();
            for group in self.request.added_groups() {
                added.bytes(number, group.as_bytes());
            }
            self.splice.append(range, added);
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, found: &Found) -> Result<(), Refusal> {
        match &field.inside {
            Inside::Text(place) => self.text(*place, found),
            Inside::Message(_) if field.is_message_at(Place::AggregationRule) => {
                self.splice.remove(found);
                Ok(())
            }
            Inside::Message(message) => self.enter(found, |mapper, range| mapper.message(message, range)),
            Inside::Entries(place, values) => self.enter(found, |mapper, range| mapper.entry(*place, values, range)),
            Inside::Json(node) => self.json(node, found),
            Inside::Number(place) => {
                unreachable!("no table of requests has a number that is a {place:?}, as a test shows")
            }
        }
    }

    /// Enters the message in a field.
    fn enter(
        &mut self,
        found: &Found,
        change: impl FnOnce(&mut Self, Range<usize>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let outer = self.splice.enter();
        change(self, found.inside.clone())?;
        self.splice.leave(found, outer);
        Ok(())
    }

    fn text(&mut self, place: Place, found: &Found) -> Result<(), Refusal> {
        match place {
            Place::OwnNamespace | Place::NoNamespace => self.own_namespace(found),
            Place::RoleName => self.role(found),
            Place::Namespace | Place::OwnName => self.namespace(found),
            Place::AskedNamespace => self.asked_namespace(found),
            Place::Identity | Place::IdentityElement => self.identity(found),
            Place::NodeName => {
                self.node(found);
                Ok(())
            }
            // Handled elsewhere: with the rest of the metadata, or before the rest of the Secret.
            Place::OwnGenerateName | Place::SecretType | Place::ConfigMapName => Ok(()),
            place => unreachable!("no table has a text that is a {place:?}, as a test shows"),
        }
    }

    /// `metadata.namespace`.
    fn own_namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.request.own_namespace(self.splice.bytes(found))?;
            self.splice.replace(found, host);
        }
        Ok(())
    }

    /// The name of a namespace. An empty one means all, none or that of the object, and stays unchanged.
    fn namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let given = self.splice.bytes(found);
            let host = self.request.host(given)?;
            self.report.names(given);
            self.splice.replace(found, host.to_bytes());
        }
        Ok(())
    }

    /// A user or group.
    fn identity(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            // Go does not change invalid UTF-8. Nobody has such a name.
            let host = self.request.identity(&String::from_utf8_lossy(self.splice.bytes(found)))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    fn node(&mut self, found: &Found) {
        if !found.is_empty() {
            self.report.nodes.push(String::from_utf8_lossy(self.splice.bytes(found)).into_owned());
        }
    }

    /// JSON inside of protobuf.
    fn json(&mut self, node: &program::Node, found: &Found) -> Result<(), Refusal> {
        let text = self.splice.bytes(found);
        if text.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor::new(text, 0, 0);
        let mut edits = Edits::new();
        let mut writer = Writer::new(self.request);
        walk(&mut writer, node, &mut cursor, &mut edits)?;
        cursor.finish()?;
        let report = writer.conclude(&cursor, &mut edits);
        self.report.nodes.extend(report.nodes);
        report.namespaces.iter().for_each(|name| self.report.names(name.as_ref()));
        if !edits.is_empty() {
            let mut pieces: Vec<Bytes> = Vec::new();
            edits.splice(&Bytes::copy_from_slice(text), 0..text.len(), &mut pieces);
            self.splice.replace(found, pieces.concat().into());
        }
        Ok(())
    }

    /// The only field with this number.
    fn find(&self, range: Range<usize>, number: u32) -> Result<Option<Found>, Refusal> {
        let mut fields = self.splice.fields(range);
        let found = fields.next(|other| other == number)?;
        if found.is_some() && fields.next(|other| other == number)?.is_some() {
            return Err(Reason::Duplicate.into());
        }
        Ok(found)
    }

    /// The bytes of the only field with this number, for comparison.
    fn look_up(&self, range: &Range<usize>, number: Option<u32>) -> Result<&'b [u8], Refusal> {
        let Some(number) = number else { return Ok(b"") };
        Ok(self.find(range.clone(), number)?.map_or(b"", |found| self.splice.bytes(&found)))
    }
}

#[cfg(test)]
mod tests;
