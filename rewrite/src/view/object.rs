//! Handles each place of an object in a response.

use bytes::Bytes;

use super::decision::Decision;
use super::filter::{Filter, Verdict};
use super::key::Key;
use super::key_map::KeyMap;
use super::last_applied::LastApplied;
use super::names::Names;
use super::node_ports::NodePorts;
use super::owner_fields::OwnerFields;
use super::pod::PodFields;
use super::role::{self, Role};
use super::settings::Settings;
use super::tally::Remainders;
use super::{binding, condition, reference, renamed, review, rule, selector, shared};
use crate::Program;
use crate::credential::Credential;
use crate::json::{Cursor, Edits, Malformed, Outcome, unquoted};
use crate::mapping::Shown;
use crate::program::{Node, Place, Visitor, descend, walk};

/// Reads one object. Decisions that need the whole object are pending until [`conclude`](Self::conclude).
pub(super) struct Reader<'v> {
    view: &'v Settings,
    decision: Decision<'v>,
    pod: PodFields,
    credential: Credential,
    /// `None` within an annotation, which contains no other.
    last_applied: Option<LastApplied>,
    role: Role,
    node_ports: NodePorts,
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
    pub(super) fn new(view: &'v Settings, filter: Filter) -> Self {
        Self {
            view,
            decision: Decision::new(view, filter),
            pod: PodFields::default(),
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

    /// For managed fields that are read when the `remainders` of the fields themselves are known.
    pub(super) fn knowing(mut self, remainders: Remainders) -> Self {
        self.pod = PodFields::of(remainders);
        self
    }

    /// What is known about the guarded fields so far.
    pub(super) fn remainders(&self) -> Remainders {
        self.pod.remainder()
    }

    /// The fields that determine whether the object is visible.
    pub(super) fn owner_fields(&mut self) -> OwnerFields<'_, 'v> {
        OwnerFields { names: self.names(), decision: &mut self.decision }
    }

    /// The names in the object.
    pub(super) fn names(&self) -> Names<'v> {
        Names { mapping: &self.view.mapping }
    }

    /// Makes the decisions that need the whole object. Call it before you use the edits.
    pub(super) fn conclude(mut self, program: &Program, cursor: &Cursor<'_>, edits: &mut Edits) -> Verdict {
        let verdict = self.verdict();
        if verdict != Verdict::Foreign {
            if let Some(last_applied) = self.last_applied.take()
                && let Some((range, applied)) = last_applied.of_host(program, cursor)
                && let Some(shown) = applied_object(self.view, program, &applied)
            {
                edits.replace(range, unquoted(&shown));
            }
            self.pod.conclude(program, edits);
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

    /// The result so far.
    fn verdict(&self) -> Verdict {
        let is_by_role = self.decision.filter() == Filter::ByRole;
        self.decision.verdict(is_by_role.then(|| self.role.verdict(self.view.selector.as_deref())))
    }

    fn key_map(&mut self) -> KeyMap<'_, 'v> {
        let enforces_pod_security = self.view.enforces_pod_security;
        KeyMap { names: self.names(), last_applied: self.last_applied.as_mut(), enforces_pod_security }
    }

    /// `details` of a Status.
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

    fn details_name(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        match self.about {
            About::Namespace => self.names().namespace(cursor, edits),
            About::Role => self.names().role(cursor, edits).map(drop),
            About::Other => self.names().requested_object(cursor, edits),
        }
    }

    /// `metadata.name` of a ClusterRole or of a cluster-scoped custom object.
    fn own_name(&mut self, place: Place, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let seen = match place {
            Place::RoleName => self.names().role(cursor, edits)?,
            _ => self.names().custom_object(cursor, edits)?,
        };
        self.role.see(seen);
        Ok(())
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
    ) -> Result<Outcome, Malformed> {
        if matches!(place, Place::OwnNamespace | Place::OwnName | Place::RoleName | Place::RenamedName)
            && let Some(last_applied) = &mut self.last_applied
        {
            last_applied.belongs_to(cursor)?;
        }
        let (view, names) = (self.view, self.names());
        match place {
            Place::OwnNamespace if self.decision.filter() == Filter::ByNamespace => {
                self.owner_fields().namespace(cursor, edits)?;
            }
            Place::OwnName if self.decision.filter() == Filter::ByName => {
                self.owner_fields().namespace(cursor, edits)?;
            }
            Place::OwnNamespace | Place::OwnName | Place::Namespace | Place::ReviewNamespace => {
                names.namespace(cursor, edits)?;
            }
            Place::OwnUid => names.uid(cursor, edits)?,
            Place::OwnLabels => return self.key_map().namespace_labels(cursor, edits),
            Place::OwnAnnotations => return self.key_map().namespace_annotations(cursor, edits),
            Place::OwnedKeys => return self.key_map().owned(cursor, edits, |_| Key::Itself),
            Place::OwnedNamespaceKeys => return self.key_map().owned_by_namespace(cursor, edits),
            Place::HiddenKeys | Place::BindingLabels => return self.key_map().hidden(cursor, edits),
            Place::NamespaceConditions => condition::conditions(self, &view.mapping, node, cursor, edits)?,
            Place::OwnedAskedNamespace => return review::owned_namespace(view.about.as_deref(), cursor),
            Place::Identity => {
                names.identity(cursor, edits)?;
            }
            Place::IdentityElement if !names.identity(cursor, edits)? => return Ok(Outcome::Remove),
            Place::IdentityElement => {}
            Place::Message => names.message(cursor, edits)?,
            Place::Reference | Place::BindingTarget | Place::BoundObject => {
                reference::reference(names, cursor, edits)?;
            }
            Place::Subject => reference::subject(names, cursor, edits)?,
            Place::RoleRef => reference::role_ref(names, cursor, edits)?,
            Place::Rule | Place::ShownRule => rule::rule(names, cursor, edits)?,
            Place::Claim => self.owner_fields().claim(cursor, edits)?,
            Place::OfNode => self.owner_fields().node(cursor)?,
            Place::ParentReference => self.owner_fields().parent(cursor, edits)?,
            Place::AutoupdateSpec => self.owner_fields().autoupdate_spec(cursor)?,
            Place::ProjectedName => self.owner_fields().name(cursor)?,
            Place::EventObject => self.owner_fields().event_object(cursor, edits)?,
            Place::ResourceAttributes => {
                review::resource_attributes(names, view.about.as_deref(), cursor, edits)?;
            }
            Place::Details => self.details(node, cursor, edits)?,
            Place::DetailsName => self.details_name(cursor, edits)?,
            Place::NamespaceSelector => selector::namespace_selector(names, cursor, edits)?,
            Place::NodeSelector => return self.pod.node_selector(&view.guard, cursor, edits),
            Place::Tolerations => return self.pod.tolerations(&view.guard, cursor, edits),
            Place::OwnedNodeSelector => self.pod.owned_node_selector(&view.guard, cursor)?,
            Place::OwnedTolerations => self.pod.owned_tolerations(cursor)?,
            Place::LastApplied => match &mut self.last_applied {
                Some(last_applied) => last_applied.note(cursor)?,
                None => cursor.skip()?,
            },
            Place::SecretType
            | Place::SecretNamespace
            | Place::SecretCertificate
            | Place::ConfigMapName
            | Place::ConfigMapCertificate => self.credential.note(place, cursor)?,
            Place::NamespaceMeta
            | Place::RoleMeta
            | Place::RenamedMeta
            | Place::BindingMeta
            | Place::PodSpec
            | Place::Revision => {
                return descend(self, node, cursor, edits);
            }
            Place::RoleName | Place::RenamedName => self.own_name(place, cursor, edits)?,
            Place::RenamedLabels => return renamed::labels(&mut self.role, view.mapping.cluster(), cursor, edits),
            Place::RoleLabels => {
                return self.role.labels(view.mapping.cluster(), view.selector.as_deref(), cursor, edits);
            }
            Place::RoleAnnotations => return self.role.annotations(self.last_applied.as_mut(), cursor, edits),
            Place::OwnedRoleLabels | Place::OwnedRoleAnnotations => return role::owned_keys(cursor, edits),
            Place::Rules => {
                descend(self, node, cursor, edits)?;
                self.role.rules_end(cursor);
            }
            Place::BindingKind => binding::kind(cursor, edits)?,
            Place::NoNamespace => {
                cursor.skip()?;
                return Ok(Outcome::Remove);
            }
            Place::ServiceAnnotations => {
                return self.node_ports.annotations(self.last_applied.as_mut(), cursor, edits);
            }
            Place::ServicePort => self.node_ports.port(cursor)?,
            Place::HealthCheckNodePort => self.node_ports.health_check(cursor)?,
            Place::SharedMeta => shared::metadata(view, &mut self.decision, cursor, edits)?,
            Place::OwnGenerateName | Place::NodeName | Place::AggregationRule => cursor.skip()?,
        }
        Ok(Outcome::Keep)
    }

    fn is_done(&self) -> bool {
        self.decision.is_foreign()
    }
}

/// An object in an annotation, which the host has [applied](LastApplied::of_host), as the virtual cluster sees it. `None` if the
/// text is not an object.
pub(super) fn applied_object(view: &Settings, program: &Program, applied: &Bytes) -> Option<String> {
    let filter = match program {
        program if program.is_of_namespaces() => Filter::ByName,
        program if program.is_of_roles() || program.is_of_renamed() => Filter::Everything,
        _ => Filter::ByNamespace,
    };
    let mut cursor = Cursor::new(applied, 0, 0);
    let mut edits = Edits::new();
    let mut inner = Reader::new(view, filter).within_annotation();
    walk(&mut inner, program.root(), &mut cursor, &mut edits).ok()?;
    cursor.finish().ok()?;
    if inner.conclude(program, &cursor, &mut edits) != Verdict::Shown {
        return None;
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    edits.splice(applied, 0..applied.len(), &mut pieces);
    String::from_utf8(pieces.concat()).ok()
}
