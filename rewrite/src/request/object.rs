//! Handles each place of an object in a request.

use std::ops::Range;

use bytes::Bytes;

use super::namespace::OwnName;
use super::pod::PodFields;
use super::role::RoleParts;
use super::{Reason, Refusal, Report, Request};
use crate::credential::Credential;
use crate::json::{Cursor, Edits, Fate, Text, quoted};
use crate::parked::{parked, parked_annotation};
use crate::program::{Node, Place, Visitor, descend};

/// The kind in the virtual cluster.
pub(super) const CLUSTER_BINDING: &str = "ClusterRoleBinding";
/// The kind on the host.
pub(super) const HOST_BINDING: &str = "RoleBinding";

/// Maps one object.
pub(super) struct Writer<'r> {
    pub(super) request: &'r Request,
    pub(super) report: Report,
    pub(super) pod: PodFields,
    pub(super) own: OwnName,
    pub(super) role: RoleParts,
    credential: Credential,
    /// Whether this is inside of data that the StatefulSet controller reads.
    pub(super) in_revision: bool,
    /// Whether a list of groups had an element.
    pub(super) has_groups: bool,
    /// The number of permissions that the rules grant so far.
    pub(super) permissions: u64,
}

// === impl Writer ===

impl<'r> Writer<'r> {
    pub(super) fn new(request: &'r Request) -> Self {
        Self {
            request,
            report: Report::default(),
            pod: PodFields::default(),
            own: OwnName::default(),
            role: RoleParts::default(),
            credential: Credential::default(),
            in_revision: false,
            has_groups: false,
            permissions: 0,
        }
    }

    /// Makes the decisions that need the whole object.
    pub(super) fn conclude(self, cursor: &Cursor<'_>, edits: &mut Edits) -> Report {
        self.role.conclude(self.request.form, self.request.mapping.cluster().as_str(), cursor, edits);
        let map = |name: &[u8]| self.request.token_namespace(name);
        self.credential.conclude(self.request.certificate.as_deref(), cursor, edits, map);
        self.report
    }

    /// `metadata.namespace`.
    fn own_namespace(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = string(cursor)?.filter(|text| !text.raw.is_empty()) else { return Ok(()) };
        edits.replace(text.range(), self.request.own_namespace(&text.bytes())?);
        Ok(())
    }

    /// The name of a namespace. An empty one means all, none or that of the object, and stays unchanged.
    pub(super) fn namespace(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = string(cursor)?.filter(|text| !text.raw.is_empty()) else { return Ok(()) };
        let given = text.bytes();
        edits.replace(text.range(), self.request.host(&given)?.to_bytes());
        self.report.names(&given);
        Ok(())
    }

    /// A user or group.
    pub(super) fn identity(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = string(cursor)?.filter(|text| !text.raw.is_empty()) else { return Ok(()) };
        let host = self.request.identity(&text.decode())?;
        edits.replace(quotes_of(&text), Bytes::from(quoted(&host)));
        Ok(())
    }

    fn node_name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Refusal> {
        if let Some(text) = string(cursor)?.filter(|text| !text.raw.is_empty()) {
            self.report.nodes.push(text.decode().into_owned());
        }
        Ok(())
    }
}

impl Visitor for Writer<'_> {
    type Error = Refusal;

    fn visit(
        &mut self,
        place: Place,
        node: &Node,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Fate, Refusal> {
        match place {
            Place::OwnNamespace | Place::NoNamespace => self.own_namespace(cursor, edits)?,
            Place::RoleMeta | Place::RenamedMeta => self.role_meta(node, cursor, edits)?,
            Place::RenamedName => self.renamed(cursor, edits)?,
            Place::RenamedLabels => self.renamed_labels(cursor, edits)?,
            Place::RoleName => self.role(cursor, edits)?,
            Place::RoleLabels => self.role_labels(cursor, edits)?,
            Place::RoleAnnotations => self.role_annotations(cursor, edits)?,
            Place::OwnedRoleLabels => Self::owned_keys(cursor, edits, |key| Some(parked(key)))?,
            Place::OwnedRoleAnnotations => Self::owned_keys(cursor, edits, parked_annotation)?,
            // No key is parked both as a label and as an annotation.
            Place::OwnedNamespaceKeys => {
                let rules = &self.request.rules;
                Self::owned_keys(cursor, edits, |key| parked_annotation(key).or_else(|| rules.asked_key(key)))?;
            }
            Place::Rules => return descend(self, node, cursor, edits),
            Place::AggregationRule => return self.aggregation_rule(cursor, edits),
            Place::RoleRef => self.role_ref(cursor, edits)?,
            Place::BindingKind => binding_kind(cursor, edits)?,
            Place::HiddenKeys => Self::hidden_keys(cursor, edits)?,
            Place::NamespaceMeta => self.namespace_meta(node, cursor, edits)?,
            Place::OwnName => self.own_name(cursor, edits)?,
            Place::OwnGenerateName => self.own_generate_name(cursor)?,
            Place::OwnLabels => self.own_labels(cursor, edits)?,
            Place::OwnAnnotations => self.own_annotations(cursor, edits)?,
            Place::Namespace => self.namespace(cursor, edits)?,
            Place::Identity => self.identity(cursor, edits)?,
            Place::IdentityElement => self.group(cursor, edits)?,
            Place::Reference
            | Place::BindingTarget
            | Place::BoundObject
            | Place::Subject
            | Place::Claim
            | Place::ParentReference
            | Place::EventObject => self.reference(place, cursor, edits)?,
            Place::ResourceAttributes => self.resource_attributes(cursor, edits)?,
            Place::Rule => self.rule(cursor, edits)?,
            Place::AskedNamespace => self.rules_namespace(cursor, edits)?,
            Place::NamespaceSelector => self.namespace_selector(cursor, edits)?,
            Place::PodSpec => self.pod_spec(node, cursor, edits)?,
            Place::Revision => {
                self.in_revision = true;
                descend(self, node, cursor, edits)?;
                self.in_revision = false;
            }
            Place::NodeSelector => self.node_selector(cursor, edits)?,
            Place::Tolerations => self.tolerations(cursor, edits)?,
            Place::NodeName => self.node_name(cursor)?,
            Place::SecretType
            | Place::SecretNamespace
            | Place::SecretCertificate
            | Place::ConfigMapName
            | Place::ConfigMapCertificate => self.credential.note(place, cursor)?,
            // The host writes it and ignores what a client sends; or it stays as the client wrote it.
            Place::LastApplied
            | Place::Message
            | Place::OfNode
            | Place::AutoupdateSpec
            | Place::ProjectedName
            | Place::Details
            | Place::DetailsName
            | Place::ShownRule
            | Place::OwnedKeys
            | Place::SharedMeta
            | Place::NamespaceConditions
            | Place::OwnedAskedNamespace
            | Place::OwnedNodeSelector
            | Place::OwnedTolerations
            // The caller handles it.
            | Place::ServiceAnnotations
            | Place::ServicePort
            | Place::HealthCheckNodePort => cursor.skip()?,
        }
        Ok(Fate::Keep)
    }

    fn duplicate(&mut self, _: &Cursor<'_>) -> Result<(), Refusal> {
        Err(Reason::Duplicate.into())
    }

    fn other(&mut self, node: &Node, key: &Text<'_>) -> Result<(), Refusal> {
        if !self.in_revision {
            return Ok(());
        }
        node.folded(key).map_or(Ok(()), |expected| Err(Reason::Spelling { expected: expected.to_owned() }.into()))
    }
}

/// The kind of a ClusterRoleBinding, which is a RoleBinding on the host. The host would use another kind as its own.
fn binding_kind(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    match string(cursor)? {
        Some(kind) if kind.is(CLUSTER_BINDING) => {
            edits.replace(kind.range(), Bytes::from_static(HOST_BINDING.as_bytes()));
            Ok(())
        }
        Some(kind) if !kind.raw.is_empty() => {
            Err(Reason::WrongKind { expected: format!("a {CLUSTER_BINDING}") }.into())
        }
        _ => Ok(()),
    }
}

/// The range of a string with its quotes.
pub(super) fn quotes_of(text: &Text<'_>) -> Range<usize> {
    text.start - 1..text.range().end + 1
}

/// The string that is the next value. `None` for `null`, which Go treats as absent.
pub(super) fn string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Refusal> {
    match cursor.peek()? {
        b'"' => Ok(Some(cursor.string()?)),
        b'n' => Ok(cursor.skip().map(|()| None)?),
        _ => Err(Reason::WrongType { expected: "a string" }.into()),
    }
}
