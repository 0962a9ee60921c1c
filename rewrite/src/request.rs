//! Requests: maps bodies of a virtual cluster's clients for the host.
//!
//! Unlike a [`View`](crate::View), it refuses bodies that it does not understand: a name that reached the host unmapped would
//! belong to somebody else. What is *not* here: authorisation, and JSON or YAML patches that must be applied rather than mapped
//! (the caller applies them to the virtual form of the object and maps the result).
//!
//! Reading order: [`Request`], [`Refusal`], `names` (how names are mapped), `object` (the places of a JSON body), `protobuf`
//! (the same for the other encoding).

use std::sync::Arc;

use bytes::Bytes;

use crate::credential::Certificate;
use crate::json::{Cursor, Edits};
use crate::name::{HostNamespace, VirtualNamespace};
use crate::program::walk;
use crate::{Guard, Mapping, Program, ProtoProgram, Sink};

mod names;
mod namespace;
mod object;
mod pod;
mod protected;
mod protobuf;
mod reference;
mod refusal;
mod renamed;
mod review;
mod role;
mod rule;
mod selector;

pub use crate::parked::AGGREGATION_ANNOTATION;
pub use crate::review::AskedAbout;
pub use namespace::NamespaceRules;
pub use protected::{KeyPattern, NotAPattern, PROTECTED, PROTECTED_BY_DEFAULT, ProtectedKeys};
pub use refusal::{Reason, Refusal};
pub use rule::{MAX_PERMISSIONS, RuleLengths};

use object::Writer;

/// The mapping of the bodies of one request.
#[derive(Clone, Debug)]
pub struct Request {
    mapping: Mapping,
    guard: Arc<Guard>,
    namespace: Option<VirtualNamespace>,
    form: Form,
    rules: Arc<NamespaceRules>,
    certificate: Option<Arc<Certificate>>,
    root: Option<HostNamespace>,
    groups: Arc<[String]>,
    made: Option<VirtualNamespace>,
}

/// Whether a body contains a whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The whole object. Absent fields will be absent, so the guard is added.
    Whole,
    /// Only changes (a merge patch). Absent fields stay unchanged.
    Partial,
}

/// What the caller must know about a mapped body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The nodes to which pods will be bound. The caller checks that they belong to the virtual cluster.
    pub nodes: Vec<String>,
    /// Namespaces that the body names, up to a limit: the response of the host may contain them.
    pub namespaces: Vec<VirtualNamespace>,
    /// A merge patch would remove a part of the guard (by a `null`), so the caller must apply it instead.
    pub removes_guard: bool,
    /// The attributes of an access review, for the [view](crate::View::answering) of its response.
    pub about: AskedAbout,
}

// === impl Report ===

impl Report {
    /// The maximum number of remembered names.
    const MANY: usize = 16;

    fn names(&mut self, given: &[u8]) {
        if self.namespaces.len() < Self::MANY
            && !self.namespaces.iter().any(|known| known.as_ref() == given)
            && let Ok(name) = VirtualNamespace::from_bytes(given)
        {
            self.namespaces.push(name);
        }
    }
}

// === impl Request ===

impl Request {
    /// A request for a cluster-scoped object.
    pub fn new(mapping: Mapping) -> Self {
        Self {
            mapping,
            guard: Arc::default(),
            namespace: None,
            form: Form::Whole,
            rules: Arc::default(),
            certificate: None,
            root: None,
            groups: Arc::default(),
            made: None,
        }
    }

    /// The request names this namespace in its path.
    #[must_use]
    pub fn in_namespace(mut self, namespace: VirtualNamespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// The name of a new Namespace that has only `generateName`.
    #[must_use]
    pub fn naming(mut self, made: VirtualNamespace) -> Self {
        self.made = Some(made);
        self
    }

    /// Adds `guard` to pod specifications.
    #[must_use]
    pub fn guarding(mut self, guard: Arc<Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// The body contains only changes, like a merge patch.
    #[must_use]
    pub fn partial(mut self) -> Self {
        self.form = Form::Partial;
        self
    }

    /// The rules for writes to Namespaces.
    #[must_use]
    pub fn ruled_by(mut self, rules: Arc<NamespaceRules>) -> Self {
        self.rules = rules;
        self
    }

    /// Restores the host's `certificate` where a view shows that of the endpoint.
    #[must_use]
    pub fn restoring(mut self, certificate: Arc<Certificate>) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// In access and rules reviews, replaces namespaces that the virtual cluster does not have by `root`: in a namespace that
    /// does not exist, only subjects with rights in all namespaces have rights.
    #[must_use]
    pub fn asking_root(mut self, root: HostNamespace) -> Self {
        self.root = Some(root);
        self
    }

    /// Adds groups of the host to the groups of a review, if it has any.
    #[must_use]
    pub fn also_in(mut self, groups: impl Into<Arc<[String]>>) -> Self {
        self.groups = groups.into();
        self
    }

    /// Writes the host's form of a JSON body to `sink`. Writes nothing if it is refused.
    pub fn map(&self, program: &Program, body: &Bytes, sink: &mut impl Sink) -> Result<Report, Refusal> {
        let mut cursor = Cursor::new(body, 0, 0);
        let mut edits = Edits::new();
        let mut writer = Writer::new(self);
        writer.role.has_metadata = program.is_of_roles() && cursor.member_at("metadata")?.is_some();
        walk(&mut writer, program.root(), &mut cursor, &mut edits)?;
        cursor.finish()?;
        let report = writer.conclude(&cursor, &mut edits);
        edits.splice(body, 0..body.len(), sink);
        Ok(report)
    }

    /// The same for a body in protobuf, which is always a whole object. What stands in a Secret's `ca.crt` passes as it
    /// is: no [certificate](Self::restoring) is put back.
    pub fn map_protobuf(&self, program: ProtoProgram, body: &Bytes, sink: &mut impl Sink) -> Result<Report, Refusal> {
        protobuf::map(self, program, body, sink)
    }
}

#[cfg(test)]
mod tests;
