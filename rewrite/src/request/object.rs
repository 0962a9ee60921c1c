//! Handles each place of an object in a request.

use super::fields::Fields;
use super::namespace::NamespaceMeta;
use super::permissions::Permissions;
use super::pod::PodFields;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::role::RoleParts;
use super::settings::Settings;
use super::{binding, keys, namespace, reference, review, rule, selector};
use crate::Program;
use crate::credential::Credential;
use crate::json::{Cursor, Edits, Outcome, Text};
use crate::parked::{parked, parked_annotation};
use crate::program::{Node, Place, Visitor, descend};

/// Maps one object.
pub(super) struct Writer<'r> {
    fields: Fields<'r>,
    pod: PodFields,
    namespace: NamespaceMeta,
    role: RoleParts,
    credential: Credential,
    /// Whether a list of groups had an element.
    has_groups: bool,
    permissions: Permissions,
}

// === impl Writer ===

impl<'r> Writer<'r> {
    pub(super) fn new(settings: &'r Settings) -> Self {
        Self {
            fields: Fields::new(settings),
            pod: PodFields::default(),
            namespace: NamespaceMeta::default(),
            role: RoleParts::default(),
            credential: Credential::default(),
            has_groups: false,
            permissions: Permissions::default(),
        }
    }

    /// Maps the object that is the next value.
    pub(super) fn of(settings: &'r Settings, program: &Program, object: &Cursor<'_>) -> Result<Self, Refusal> {
        let mut writer = Self::new(settings);
        if program.is_of_roles() {
            writer.role = RoleParts::of(object)?;
        }
        Ok(writer)
    }

    /// Makes the decisions that need the whole object.
    pub(super) fn conclude(self, cursor: &Cursor<'_>, edits: &mut Edits) -> Report {
        self.role.conclude(self.fields.settings.form, self.fields.settings.cluster().as_str(), cursor, edits);
        let map = |name: &[u8]| self.fields.settings.names.token_namespace(name);
        self.credential.conclude(None, cursor, edits, map);
        self.fields.report
    }

    /// `metadata` of a Namespace.
    fn namespace_meta(&mut self, node: &Node, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            // Without a name: the host refuses it.
            return Ok(cursor.skip()?);
        }
        self.namespace = NamespaceMeta::begin(self.fields.settings, cursor)?;
        descend(self, node, cursor, edits)?;
        self.namespace.finish(self.fields.settings, edits)
    }

    /// The specification of a pod.
    fn pod_spec(&mut self, node: &Node, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            // A pod without a specification has no containers: the host refuses it.
            return Ok(cursor.skip()?);
        }
        let object = cursor.clone();
        self.pod = PodFields::default();
        descend(self, node, cursor, edits)?;
        self.pod.finish(&self.fields, &object, edits)
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
    ) -> Result<Outcome, Refusal> {
        match place {
            Place::OwnNamespace | Place::NoNamespace => self.fields.own_namespace(cursor, edits)?,
            Place::RoleMeta | Place::RenamedMeta | Place::BindingMeta => {
                self.role.metadata(cursor)?;
                return descend(self, node, cursor, edits);
            },
            Place::RenamedName => self.fields.custom_object(cursor, edits)?,
            // The keys do not change, because controllers select by them.
            Place::RenamedLabels | Place::BindingLabels => {
                self.role.labels(&mut self.fields, cursor, edits, |_| None)?;
            }
            Place::RoleName => self.fields.role(cursor, edits)?,
            Place::RoleLabels => self.role.labels(&mut self.fields, cursor, edits, |key| Some(parked(key)))?,
            Place::RoleAnnotations => self.role.annotations(&mut self.fields, cursor, edits)?,
            Place::OwnedRoleLabels => keys::owned_keys(cursor, edits, |key| Some(parked(key)))?,
            Place::OwnedRoleAnnotations => keys::owned_keys(cursor, edits, parked_annotation)?,
            // No key is parked both as a label and as an annotation.
            Place::OwnedNamespaceKeys => {
                let rules = &self.fields.settings.rules;
                keys::owned_keys(cursor, edits, |key| parked_annotation(key).or_else(|| rules.requested_key(key)))?;
            }
            Place::Rules => return descend(self, node, cursor, edits),
            Place::AggregationRule => return self.role.aggregation_rule(cursor, edits),
            Place::RoleRef => reference::role_ref(&mut self.fields, cursor, edits)?,
            Place::BindingKind => binding::kind(cursor, edits)?,
            Place::HiddenKeys => keys::hidden_keys(cursor, edits)?,
            Place::NamespaceMeta => self.namespace_meta(node, cursor, edits)?,
            Place::OwnName => namespace::name(&mut self.fields, cursor, edits)?,
            Place::OwnUid => self.fields.uid(cursor, edits)?,
            Place::OwnGenerateName => self.namespace.generate_name(cursor)?,
            Place::OwnLabels => self.namespace.labels(&mut self.fields, cursor, edits)?,
            Place::OwnAnnotations => self.namespace.annotations(&mut self.fields, cursor, edits)?,
            Place::Namespace => self.fields.namespace(cursor, edits)?,
            Place::Identity => self.fields.identity(cursor, edits)?,
            Place::IdentityElement => review::group(&self.fields, &mut self.has_groups, cursor, edits)?,
            Place::Reference
            | Place::BindingTarget
            | Place::BoundObject
            | Place::Subject
            | Place::Claim
            | Place::ParentReference
            | Place::EventObject => reference::reference(&mut self.fields, place, cursor, edits)?,
            Place::ResourceAttributes => review::resource_attributes(&mut self.fields, cursor, edits)?,
            Place::Rule => rule::rule(&mut self.fields, &mut self.permissions, cursor, edits)?,
            Place::ReviewNamespace => review::rules_namespace(self.fields.settings, cursor, edits)?,
            Place::NamespaceSelector => selector::namespace_selector(&mut self.fields, cursor, edits)?,
            Place::PodSpec => self.pod_spec(node, cursor, edits)?,
            Place::Revision => {
                self.fields.in_revision = true;
                descend(self, node, cursor, edits)?;
                self.fields.in_revision = false;
            }
            Place::NodeSelector => self.pod.node_selector(&mut self.fields, cursor, edits)?,
            Place::Tolerations => self.pod.tolerations(&mut self.fields, cursor, edits)?,
            Place::NodeName => self.fields.node(cursor)?,
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
        Ok(Outcome::Keep)
    }

    fn duplicate(&mut self, _: &Cursor<'_>) -> Result<(), Refusal> {
        Err(Reason::Duplicate.into())
    }

    fn other(&mut self, node: &Node, key: &Text<'_>) -> Result<(), Refusal> {
        if !self.fields.in_revision {
            return Ok(());
        }
        node.folded(key).map_or(Ok(()), |expected| Err(Reason::Spelling { expected: expected.to_owned() }.into()))
    }
}
