//! Requests: maps bodies of a virtual cluster's clients for the host.
//!
//! Unlike a [`View`](crate::View), it refuses bodies that it cannot interpret: a name that reached the host unmapped
//! could belong to another owner. What is *not* here: authorisation, and JSON or YAML patches that must be applied
//! rather than mapped (the caller applies them to the virtual form of the object and maps the result).
//!
//! Reading order: [`Request`], [`Refusal`], `settings`, `names` (how names are mapped), `fields` (the values of a JSON body),
//! `object` (its places), `protobuf` (the same for the other encoding).

use std::sync::Arc;

use bytes::Bytes;

use crate::json::{Cursor, Edits};
use crate::name::{HostNamespace, VirtualNamespace};
use crate::program::walk;
use crate::{Guard, Mapping, Program, ProtoProgram, Sink};

mod binding;
mod confinement;
mod fields;
mod form;
mod guarded_labels;
mod hosts;
mod keys;
mod named;
mod names;
mod namespace;
mod namespace_rules;
mod object;
mod open;
mod permissions;
mod pod;
mod protected;
mod protobuf;
mod reference;
mod refusal;
mod report;
mod required_entries;
mod review;
mod role;
mod rule;
mod selector;
mod settings;
mod strings;

pub use crate::parked::AGGREGATION_ANNOTATION;
pub use crate::review::OriginalAttributes;
pub use namespace_rules::NamespaceRules;
pub use permissions::{MAX_PERMISSIONS, RuleLengths};
pub use protected::{KeyPattern, NotAPattern, PROTECTED, PROTECTED_BY_DEFAULT, ProtectedKeys};
pub use refusal::{Reason, Refusal};
pub use report::Report;

use form::Form;
use object::Writer;
use settings::Settings;

/// The mapping of the bodies of one request.
#[derive(Clone, Debug)]
pub struct Request {
    settings: Settings,
}

// === impl Request ===

impl Request {
    /// A request for a cluster-scoped object.
    pub fn new(mapping: Mapping) -> Self {
        Self { settings: Settings::new(mapping) }
    }

    /// The request names this namespace in its path.
    #[must_use]
    pub fn in_namespace(mut self, namespace: VirtualNamespace) -> Self {
        self.settings.names.own = Some(namespace);
        self
    }

    /// The name of a new Namespace that has only `generateName`.
    #[must_use]
    pub fn with_generated_name(mut self, made: VirtualNamespace) -> Self {
        self.settings.made = Some(made);
        self
    }

    /// Adds `guard` to pod specifications.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<Guard>) -> Self {
        self.settings.guard = guard;
        self
    }

    /// The body contains only changes, like a merge patch.
    #[must_use]
    pub fn partial(mut self) -> Self {
        self.settings.form = Form::Partial;
        self
    }

    /// The rules for writes to Namespaces.
    #[must_use]
    pub fn with_namespace_rules(mut self, rules: Arc<NamespaceRules>) -> Self {
        self.settings.rules = rules;
        self
    }

    /// In access and rules reviews, replaces namespaces that the virtual cluster does not have by `root`: in a namespace that
    /// does not exist, only subjects with rights in all namespaces have rights.
    #[must_use]
    pub fn with_review_root(mut self, root: HostNamespace) -> Self {
        self.settings.names.root = Some(root);
        self
    }

    /// Adds groups of the host to the groups of a review, if it has any.
    #[must_use]
    pub fn with_review_groups(mut self, groups: impl Into<Arc<[String]>>) -> Self {
        self.settings.groups = groups.into();
        self
    }

    /// Writes the host's form of a JSON body to `sink`. Writes nothing if it is refused.
    pub fn map(&self, program: &Program, body: &Bytes, sink: &mut impl Sink) -> Result<Report, Refusal> {
        let mut cursor = Cursor::new(body, 0, 0);
        let mut edits = Edits::new();
        let mut writer = Writer::of(&self.settings, program, &cursor)?;
        walk(&mut writer, program.root(), &mut cursor, &mut edits)?;
        cursor.finish()?;
        let report = writer.conclude(&cursor, &mut edits);
        edits.splice(body, 0..body.len(), sink);
        Ok(report)
    }

    /// The same for a body in protobuf, which is always a whole object.
    pub fn map_protobuf(&self, program: ProtoProgram, body: &Bytes, sink: &mut impl Sink) -> Result<Report, Refusal> {
        protobuf::map(&self.settings, program, body, sink)
    }
}

#[cfg(test)]
mod tests;
