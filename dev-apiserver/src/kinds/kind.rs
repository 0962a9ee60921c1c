//! Kinds and subresources.

use kube_wire::Verb;
use kube_wire::gvr::{GroupKind, GroupResource};

#[expect(clippy::struct_field_names, reason = "Kubernetes calls the field kind")]
/// A kind of object or of review.
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The only version.
    pub(crate) version: &'static str,
    /// The resource: the plural in lower case.
    pub(crate) resource: &'static str,
    /// The kind.
    pub(crate) kind: &'static str,
    /// The short names for kubectl.
    pub(crate) short: &'static [&'static str],
    /// Whether it is namespaced.
    pub(crate) namespaced: bool,
    /// Whether it has the category `all`.
    pub(crate) in_all: bool,
    /// How requests are handled.
    pub(crate) handling: Handling,
    /// The subresources of its objects.
    pub(crate) subresources: &'static [Subresource],
}

/// How requests for a kind are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Objects are stored, and all verbs are supported.
    Stored,
    /// Objects are stored, and all verbs except `deletecollection` are supported, as for Namespaces.
    OneByOne,
    /// A review. It can only be created, and is not stored.
    Review,
}

/// A subresource, such as `status`, `scale` or `log`.
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

/// The value of `apiVersion` for a group and a version.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

// === impl Kind ===

impl Kind {
    /// The value of `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    pub(crate) fn group_resource(&self) -> GroupResource<'static> {
        GroupResource { group: self.group, resource: self.resource }
    }

    pub(crate) fn group_kind(&self) -> GroupKind<'static> {
        GroupKind { group: self.group, kind: self.kind }
    }

    /// The singular for kubectl.
    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// The verbs in the order of discovery.
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

    /// Whether it has the subresource `status`.
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
