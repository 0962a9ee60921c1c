//! Handles each place of an object.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::proto::Writer as Proto;

use super::super::hosts::Hosts;
use super::super::object::Writer;
use super::super::permissions::Permissions;
use super::super::refusal::{Reason, Refusal};
use super::super::report::Report;
use super::super::settings::Settings;
use super::aggregation::aggregation_rule;
use super::entry::Entry;
use super::fields::Fields;
use super::namespace::NamespaceMeta;
use super::pod::PodFields;
use super::reference::reference;
use super::role;
use super::rule::rule;
use super::selector::namespace_selector;
use crate::credential::TOKEN_SECRET;
use crate::descriptor::Shape;
use crate::json::{Cursor, Edits, Fault as _, Step};
use crate::program::{Node, Place, walk};
use crate::protobuf::{Field, Found, Inside, Message, Splice};

/// Maps one object.
pub(super) struct Mapper<'r, 'b> {
    pub(super) fields: Fields<'r, 'b>,
    pod: PodFields<'r>,
    namespace: NamespaceMeta,
    is_token: bool,
    /// The parked fields of the current ClusterRole.
    aggregation: Option<String>,
    permissions: Permissions,
}

// === impl Mapper ===

impl<'r, 'b> Mapper<'r, 'b> {
    pub(super) fn new(settings: &'r Settings, splice: Splice<'b>) -> Self {
        Self {
            fields: Fields { settings, splice, report: Report::default(), hosts: Hosts::default() },
            pod: PodFields::default(),
            namespace: NamespaceMeta::default(),
            is_token: false,
            aggregation: None,
            permissions: Permissions::default(),
        }
    }

    /// Maps the object in a field.
    pub(super) fn object(&mut self, root: &Message, found: &Found) -> Result<(), Refusal> {
        let range = &found.inside;
        let kind_of_secret = root.fields.iter().find(|field| matches!(field.inside, Inside::Text(Place::SecretType)));
        if let Some(field) = kind_of_secret {
            let kind = self.fields.find(range.clone(), field.number)?;
            self.is_token = kind.is_some_and(|kind| self.fields.splice.bytes(&kind) == TOKEN_SECRET.as_bytes());
        }
        // It is stored in the metadata, which comes first.
        let aggregation = root.fields.iter().find(|field| field.is_message_at(Place::AggregationRule));
        if let Some(field) = aggregation
            && let Some(found) = self.fields.find(range.clone(), field.number)?
        {
            self.aggregation = Some(aggregation_rule(self.fields.splice.bytes(&found))?);
        }
        self.enter(found, |mapper, range| mapper.message(root, range))
    }

    /// Handles a message according to its place.
    fn message(&mut self, message: &Message, range: Range<usize>) -> Result<(), Refusal> {
        match message.place {
            None => self.descend(message, &range),
            Some(Place::NamespaceMeta) => self.namespace_meta(message, &range),
            Some(Place::PodSpec) => self.pod_spec(message, &range),
            Some(Place::RoleMeta | Place::BindingMeta) => {
                self.descend(message, &range)?;
                role::finish(&mut self.fields, self.aggregation.take().as_deref(), message, &range);
                Ok(())
            }
            Some(Place::Rule) => rule(&mut self.fields, &mut self.permissions, message, &range),
            Some(Place::Tolerations) => {
                let toleration = self.fields.splice.slice(range);
                self.pod.toleration(self.fields.settings, toleration)
            }
            Some(Place::NamespaceSelector) => namespace_selector(&mut self.fields, range),
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
            ) => reference(&mut self.fields, place, message, &range),
            Some(place) => unreachable!("no table has a message that is a {place:?}, as a test shows"),
        }
    }

    fn namespace_meta(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        self.namespace = NamespaceMeta::begin(&self.fields, message, range)?;
        self.descend(message, range)?;
        std::mem::take(&mut self.namespace).finish(&mut self.fields, message, range)
    }

    fn pod_spec(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        self.pod = PodFields::new(self.fields.settings);
        self.descend(message, range)?;
        std::mem::take(&mut self.pod).finish(&mut self.fields, message, range)
    }

    /// Handles the content of a message. The depth of the recursion is that of the program, for any body.
    fn descend(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        let mut seen = 0_u64;
        let mut groups = None;
        let mut fields = self.fields.splice.fields(range.clone());
        while let Some(((position, field), found)) = fields.next_known(|number| message.field(number))? {
            let result = match field.shape {
                Shape::One if seen & 1 << position != 0 => Err(Reason::Duplicate.into()),
                Shape::One | Shape::Map => self.field(field, &found),
                Shape::Many => self
                    .field(field, &found)
                    .map_err(|refusal| refusal.within(Step::Element(self.fields.splice.index_of(&found, range)))),
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
            let mut added = Proto::new();
            for group in self.fields.settings.groups.iter() {
                added.bytes(number, group.as_bytes());
            }
            self.fields.splice.append(range, added);
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, found: &Found) -> Result<(), Refusal> {
        match &field.inside {
            Inside::Text(place) => self.text(*place, found),
            Inside::Message(_) if field.is_message_at(Place::AggregationRule) => {
                self.fields.splice.remove(found);
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
        let outer = self.fields.splice.enter(found);
        change(self, found.inside.clone())?;
        self.fields.splice.leave(found, outer);
        Ok(())
    }

    fn text(&mut self, place: Place, found: &Found) -> Result<(), Refusal> {
        match place {
            Place::OwnNamespace | Place::NoNamespace => self.fields.own_namespace(found),
            Place::RoleName => self.fields.role(found),
            Place::Namespace | Place::OwnName => self.fields.namespace(found),
            Place::ReviewNamespace => self.fields.review_namespace(found),
            Place::Identity | Place::IdentityElement => self.fields.identity(found),
            Place::OwnUid => {
                self.fields.uid(found);
                Ok(())
            }
            Place::NodeName => {
                self.fields.node(found);
                Ok(())
            }
            // Handled elsewhere: with the rest of the metadata, or before the rest of the Secret.
            Place::OwnGenerateName | Place::SecretType | Place::ConfigMapName => Ok(()),
            place => unreachable!("no table has a text that is a {place:?}, as a test shows"),
        }
    }

    /// Handles the entry at `range` of a map with a place, or of one in which some keys have places.
    fn entry(
        &mut self,
        place: Option<Place>,
        values: &[(Box<str>, Place)],
        range: Range<usize>,
    ) -> Result<(), Refusal> {
        let entry = Entry::read(&self.fields, range)?;
        let result = match place {
            Some(Place::NodeSelector) => self.pod.node_selector(&entry),
            Some(Place::OwnLabels) => self.namespace.label(&mut self.fields, &entry),
            Some(Place::OwnAnnotations) => self.namespace.annotation(&mut self.fields, &entry),
            Some(Place::RoleLabels) => role::label(&mut self.fields, &entry),
            Some(Place::RoleAnnotations) => role::annotation(&mut self.fields, &entry),
            Some(Place::BindingLabels | Place::HiddenKeys) => entry.not_ours(),
            _ => {
                let known = values.iter().find(|(key, _)| **key == entry.key);
                self.credential(known.map(|(_, place)| *place), &entry);
                Ok(())
            }
        };
        result.map_err(|refusal| refusal.within(Step::Key(&entry.key)))
    }

    /// The data of the host in token Secrets.
    fn credential(&mut self, place: Option<Place>, entry: &Entry<'_>) {
        if self.is_token
            && place == Some(Place::SecretNamespace)
            && let Some(value) = &entry.value
            && let Some(host) = self.fields.settings.names.token_namespace(entry.text)
        {
            self.fields.splice.replace(value, host);
        }
    }

    /// JSON inside of protobuf.
    fn json(&mut self, node: &Node, found: &Found) -> Result<(), Refusal> {
        let text = self.fields.splice.bytes(found);
        if text.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor::new(text, 0, 0);
        let mut edits = Edits::new();
        let mut writer = Writer::new(self.fields.settings);
        walk(&mut writer, node, &mut cursor, &mut edits)?;
        cursor.finish()?;
        let report = writer.conclude(&cursor, &mut edits);
        self.fields.report.nodes.extend(report.nodes);
        report.namespaces.iter().for_each(|name| self.fields.report.names(name));
        if !edits.is_empty() {
            let mut pieces: Vec<Bytes> = Vec::new();
            edits.splice(&Bytes::copy_from_slice(text), 0..text.len(), &mut pieces);
            self.fields.splice.replace(found, pieces.concat().into());
        }
        Ok(())
    }
}
