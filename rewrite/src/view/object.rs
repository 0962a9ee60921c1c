//! Handles each place of an object in a response.

use super::last_applied::LastApplied;
use super::namespace::Key;
use super::node_ports::NodePorts;
use super::pod::Owned;
use super::role::Role;
use super::{Filter, Verdict, View, binding};
use crate::Program;
use crate::credential::Credential;
use crate::json::{Cursor, Edits, Fate, Malformed};
use crate::mapping::{FOREIGN_PREFIX, Shown, identity::Seen};
use crate::program::{Node, Place, Visitor, descend};

/// Reads one object. Decisions that need the whole object are pending in `owned` and `credential`.
pub(super) struct Reader<'v> {
    pub(super) view: &'v View,
    pub(super) filter: Filter,
    /// `None` until the owner is known.
    pub(super) verdict: Option<Verdict>,
    /// Whether it is in a namespace of the host with lent objects.
    pub(super) is_lent: bool,
    /// Whether it is lent.
    pub(super) is_to_lend: bool,
    pub(super) owned: Owned,
    pub(super) credential: Credential,
    /// `None` within an annotation, which contains no other.
    pub(super) last_applied: Option<LastApplied>,
    pub(super) role: Role,
    pub(super) node_ports: NodePorts,
    /// The object of the current Status.
    about: About,
}

/// The kind of object that `details.name` of a Status names.
#[derive(Clone, Copy)]
enum About {
    Namespace,
    Role,
    Other,
}

// === impl Reader ===

impl<'v> Reader<'v> {
    pub(super) fn new(view: &'v View, filter: Filter) -> Self {
        Self {
            view,
            filter,
            verdict: None,
            is_lent: false,
            is_to_lend: false,
            owned: Owned::default(),
            credential: Credential::default(),
            last_applied: Some(LastApplied::default()),
            role: Role::default(),
            node_ports: NodePorts::default(),
            about: About::Other,
        }
    }

    /// For an object in an annotation of another one.
    pub(super) fn within_annotation(mut self) -> Self {
        self.last_applied = None;
        self
    }

    /// Makes the decisions that need the whole object. Call it before you use the edits.
    pub(super) fn conclude(mut self, program: &Program, cursor: &Cursor<'_>, edits: &mut Edits) -> Verdict {
        let verdict = self.verdict();
        if verdict != Verdict::Foreign {
            if let Some(last_applied) = self.last_applied.take() {
                last_applied.conclude(self.view, program, cursor, edits);
            }
            self.owned.conclude(program, edits);
            self.role.conclude(edits);
            self.node_ports.conclude(cursor, edits);
            let mapping = &self.view.mapping;
            self.credential.conclude(self.view.certificate.as_deref(), cursor, edits, |host| {
                match mapping.shown(host) {
                    Shown::As(name) => Some(name),
                    Shown::Unchanged | Shown::Foreign => None,
                }
            });
        }
        verdict
    }

    /// The name of a namespace anywhere in the object.
    pub(super) fn namespace(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        match self.view.mapping.shown(&text.bytes()) {
            Shown::As(name) => edits.rename(text.range(), text.raw, &name),
            Shown::Unchanged => {}
            Shown::Foreign => edits.insert(text.start, FOREIGN_PREFIX),
        }
        Ok(())
    }

    /// A user or group. Returns whether it belongs to the virtual cluster.
    pub(super) fn identity(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<bool, Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip().map(|()| true);
        }
        let text = cursor.string()?;
        if text.raw.is_empty() {
            return Ok(true);
        }
        match self.view.mapping.seen(&text.decode()) {
            Seen::Own(name) => {
                edits.replace(text.range(), unquoted(&name));
                Ok(true)
            }
            Seen::Foreign => {
                edits.insert(text.start, FOREIGN_PREFIX);
                Ok(false)
            }
        }
    }

    fn message(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.view.mapping.messages().edit(&cursor.string()?, edits);
        Ok(())
    }

    fn details(&mut self, node: &Node, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let kind = cursor.look_up("kind")?;
        // The resource in most responses, and the kind in those of validation (`NewInvalid` in apimachinery's errors.go).
        self.about = match kind {
            Some(kind) if kind.is("namespaces") || kind.is("Namespace") => About::Namespace,
            Some(kind) if kind.is("clusterroles") || kind.is("ClusterRole") => About::Role,
            _ => About::Other,
        };
        descend(self, node, cursor, edits).map(drop)
    }
}

impl Visitor for Reader<'_> {
    type Error = Malformed;

    fn visit(
        &mut self,
        place: Place,
        node: &Node,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Fate, Malformed> {
        if matches!(place, Place::OwnNamespace | Place::OwnName | Place::RoleName | Place::RenamedName)
            && let Some(last_applied) = &mut self.last_applied
        {
            last_applied.belongs_to(cursor)?;
        }
        match place {
            Place::OwnNamespace if self.filter == Filter::ByNamespace => {
                self.deciding(cursor, edits)?;
            }
            Place::OwnName if self.filter == Filter::ByName => self.deciding(cursor, edits)?,
            Place::OwnNamespace | Place::OwnName | Place::Namespace | Place::AskedNamespace => {
                self.namespace(cursor, edits)?;
            }
            Place::OwnLabels => return self.own_labels(cursor, edits),
            Place::OwnAnnotations => return self.own_annotations(cursor, edits),
            Place::OwnedKeys => return self.owned_keys(cursor, edits, |_| Key::Itself),
            Place::OwnedNamespaceKeys => return self.owned_namespace_keys(cursor, edits),
            Place::NamespaceConditions => self.namespace_conditions(node, cursor, edits)?,
            Place::OwnedAskedNamespace => return self.owned_asked_namespace(cursor),
            Place::Identity => {
                self.identity(cursor, edits)?;
            }
            Place::IdentityElement if !self.identity(cursor, edits)? => return Ok(Fate::Remove),
            Place::IdentityElement => {}
            Place::Message => self.message(cursor, edits)?,
            Place::Reference | Place::BindingTarget | Place::BoundObject => self.reference(cursor, edits)?,
            Place::Subject => self.subject(cursor, edits)?,
            Place::Rule | Place::ShownRule => self.rule(cursor, edits)?,
            Place::Claim => self.claim(cursor, edits)?,
            Place::OfNode => self.of_node(cursor)?,
            Place::ParentReference => self.parent(cursor, edits)?,
            Place::AutoupdateSpec => self.autoupdate_spec(cursor)?,
            Place::LentName => self.lent_name(cursor)?,
            Place::EventObject => self.event_object(cursor, edits)?,
            Place::ResourceAttributes => self.resource_attributes(cursor, edits)?,
            Place::Details => self.details(node, cursor, edits)?,
            Place::DetailsName => match self.about {
                About::Namespace => self.namespace(cursor, edits)?,
                About::Role => drop(self.role(cursor, edits)?),
                About::Other => self.asked_about(cursor, edits)?,
            },
            Place::NamespaceSelector => self.namespace_selector(cursor, edits)?,
            Place::NodeSelector => return self.node_selector(cursor, edits),
            Place::Tolerations => return self.tolerations(cursor, edits),
            Place::OwnedNodeSelector => self.owned_node_selector(cursor)?,
            Place::OwnedTolerations => self.owned_tolerations(cursor)?,
            Place::LastApplied => match &mut self.last_applied {
                Some(last_applied) => last_applied.note(cursor)?,
                None => cursor.skip()?,
            },
            Place::SecretType
            | Place::SecretNamespace
            | Place::SecretCertificate
            | Place::ConfigMapName
            | Place::ConfigMapCertificate => self.credential.note(place, cursor)?,
            Place::NamespaceMeta | Place::RoleMeta | Place::RenamedMeta | Place::PodSpec | Place::Revision => {
                return descend(self, node, cursor, edits);
            }
            Place::RenamedName => self.renamed_name(cursor, edits)?,
            Place::RenamedLabels => return self.renamed_labels(cursor, edits),
            Place::RoleName => self.role_name(cursor, edits)?,
            Place::RoleLabels => return self.role_labels(cursor, edits),
            Place::RoleAnnotations => return self.role_annotations(cursor, edits),
            Place::OwnedRoleLabels | Place::OwnedRoleAnnotations => return self.owned_role_keys(cursor, edits),
            Place::Rules => {
                descend(self, node, cursor, edits)?;
                self.rules_end(cursor);
            }
            Place::RoleRef => self.role_ref(cursor, edits)?,
            Place::BindingKind => binding::kind(cursor, edits)?,
            Place::NoNamespace => {
                cursor.skip()?;
                return Ok(Fate::Remove);
            }
            Place::HiddenKeys => return self.hidden_keys(cursor, edits),
            Place::ServiceAnnotations => return self.service_annotations(cursor, edits),
            Place::ServicePort => self.service_port(cursor)?,
            Place::HealthCheckNodePort => self.health_check_node_port(cursor)?,
            Place::SharedMeta => self.shared_meta(cursor, edits)?,
            Place::OwnGenerateName | Place::NodeName | Place::AggregationRule => cursor.skip()?,
        }
        Ok(Fate::Keep)
    }

    fn is_done(&self) -> bool {
        self.verdict == Some(Verdict::Foreign)
    }
}

/// The content of a JSON string for `text`.
pub(super) fn unquoted(text: &str) -> bytes::Bytes {
    let mut quoted = bytes::Bytes::from(crate::json::quoted(text)).slice(1..);
    quoted.truncate(quoted.len() - 1);
    quoted
}
