//! A kind, and how it is handled.

use kube_wire::Verb;
use kube_wire::gvr::{GroupKind, GroupResource};

#[expect(clippy::struct_field_names, reason = "Kubernetes calls the field kind")]
/// A kind of object, or of question (`SubjectAccessReview`).
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The one version that is served.
    pub(crate) version: &'static str,
    /// Plural, lower case.
    pub(crate) resource: &'static str,
    /// Camel case.
    pub(crate) kind: &'static str,
    /// The short names for kubectl.
    pub(crate) short: &'static [&'static str],
    /// Whether it is namespaced.
    pub(crate) namespaced: bool,
    /// Whether `kubectl get all` shows it.
    pub(crate) in_all: bool,
    /// How it is handled.
    pub(crate) handling: Handling,
    /// The subresources of its objects.
    pub(crate) subresources: &'static [Subresource],
}

/// How objects of a kind are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// They are stored, and all verbs are served.
    Stored,
    /// They are stored, and all verbs are served except the deletion of a collection, which Namespaces do not have.
    OneByOne,
    /// A review: it is answered and not stored.
    Review,
}

/// A subresource: `status`, `scale`, `log`.
#[derive(Debug)]
pub(crate) struct Subresource {
    /// The name in the path.
    pub(crate) name: &'static str,
    /// The group, version and kind, if they differ from those of the object.
    pub(crate) kind: Option<(&'static str, &'static str, &'static str)>,
    /// The verbs in discovery.
    pub(crate) verbs: &'static [&'static str],
}

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const ONE_BY_ONE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];

// === impl Kind ===

impl Kind {
    /// What `apiVersion` says.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn group_resource(&self) -> GroupResource<'static> {
        GroupResource { group: self.group, resource: self.resource }
    }

    pub(crate) fn group_kind(&self) -> GroupKind<'static> {
        GroupKind { group: self.group, kind: self.kind }
    }

    /// Lower case, as kubectl takes it.
    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Verbs in discovery's order.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.handling {
            Handling::Stored => ALL_VERBS,
            Handling::OneByOne => ONE_BY_ONE,
            Handling::Review => CREATE,
        }
    }

    pub(crate) fn allows(&self, verb: Verb) -> bool {
        self.verbs().contains(&verb.as_str())
    }

    /// The subresource of this name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether `status` is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.resource == "pods"
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Kind {}
