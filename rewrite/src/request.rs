//! Requests: what a client of a virtual cluster sends, as the host is to get it.
//!
//! Unlike a [`View`](crate::View), this refuses what it does not understand: a name that reached the host unmapped would
//! be somebody else's. What is *not* here: whether the client may do it, and JSON or YAML patches that must be applied
//! rather than mapped (the caller does that to the virtual form of the object and maps the result).
//!
//! Reading order: [`Request`], [`Refusal`], `names` (what names become), `object` (what happens at each place of a JSON
//! body), `protobuf` (the same for the other encoding).

use std::sync::Arc;

use bytes::Bytes;

use crate::json::{Cursor, Edits};
use crate::name::{HostNamespace, VirtualNamespace};
use crate::program::walk;
use crate::view::Certificate;
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

pub use namespace::NamespaceRules;
pub use protected::{KeyPattern, NotAPattern, PROTECTED, PROTECTED_BY_DEFAULT, ProtectedKeys};
pub use refusal::{Reason, Refusal};
pub use review::AskedAbout;
pub use role::AGGREGATION_ANNOTATION;
pub use rule::{MAX_PERMISSIONS, RuleLengths};

use object::Writer;

/// How the bodies of one request are mapped.
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

/// How much of an object a body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// All of it: what is absent is to be absent, so the guard is put in.
    Whole,
    /// What is to change (a merge patch): what is absent stays.
    Partial,
}

/// What the caller has to know of a body that was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Nodes that pods are to be bound to; the caller checks that they belong to the virtual cluster.
    pub nodes: Vec<String>,
    /// Namespaces that the body names, as far as there are not many: the host's answer may speak of them.
    pub namespaces: Vec<VirtualNamespace>,
    /// A merge patch would remove a part of the guard (by a `null`), and must be applied by the caller instead.
    pub removes_guard: bool,
    /// What an access review asks about, for the [view](crate::View::answering) of its answer.
    pub about: AskedAbout,
}

// === impl Report ===

impl Report {
    /// The most names that are remembered.
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
    /// A request about something that is in no namespace.
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

    /// The name of a new Namespace that comes with `generateName` only.
    #[must_use]
    pub fn naming(mut self, made: VirtualNamespace) -> Self {
        self.made = Some(made);
        self
    }

    /// Puts `guard` into pod specifications.
    #[must_use]
    pub fn guarding(mut self, guard: Arc<Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// The body says only what is to change, as a merge patch does.
    #[must_use]
    pub fn partial(mut self) -> Self {
        self.form = Form::Partial;
        self
    }

    /// What may be written to Namespaces.
    #[must_use]
    pub fn ruled_by(mut self, rules: Arc<NamespaceRules>) -> Self {
        self.rules = rules;
        self
    }

    /// Puts the host's `certificate` back where a view presents the endpoint's.
    #[must_use]
    pub fn restoring(mut self, certificate: Arc<Certificate>) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Makes questions about no namespace of the virtual cluster (in access and rules reviews) ones about `root`: in a
    /// namespace that does not exist, only those have rights who have them everywhere.
    #[must_use]
    pub fn asking_root(mut self, root: HostNamespace) -> Self {
        self.root = Some(root);
        self
    }

    /// Adds groups of the host to those that a review asks about, if it asks about any.
    #[must_use]
    pub fn also_in(mut self, groups: impl Into<Arc<[String]>>) -> Self {
        self.groups = groups.into();
        self
    }

    /// Gives the host's form of a JSON body to `sink`; nothing if it is refused.
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
