//! Verbs of the Kubernetes API.

use std::fmt;

use http::Method;

/// The action on a resource, as in the rules of a Role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Read one object. Also GET and HEAD on `exec`, `proxy` and the other connect subresources.
    Get,
    /// Read a collection.
    List,
    /// Watch a collection or, by the legacy path, one object.
    Watch,
    /// POST, also on `exec`, `binding`, `token`...
    Create,
    /// PUT.
    Update,
    /// PATCH, including server-side apply.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete the objects that a selector matches.
    DeleteCollection,
    /// OPTIONS for the server of a pod or a Service. Kubernetes has no name for it, so only rules for `*` allow it.
    Options,
}

/// The meaning of a method without the path.
pub(super) struct MethodVerbs {
    /// On a resource with a name.
    pub(super) resource: Verb,
    /// On any other path.
    pub(super) non_resource: &'static str,
}

/// `None` for a method that is not served.
pub(super) fn of_method(method: &Method) -> Option<MethodVerbs> {
    let (resource, non_resource) = match *method {
        Method::GET => (Verb::Get, "get"),
        Method::HEAD => (Verb::Get, "head"),
        Method::POST => (Verb::Create, "post"),
        Method::PUT => (Verb::Update, "put"),
        Method::PATCH => (Verb::Patch, "patch"),
        Method::DELETE => (Verb::Delete, "delete"),
        Method::OPTIONS => (Verb::Options, "options"),
        _ => return None,
    };
    Some(MethodVerbs { resource, non_resource })
}

// === impl Verb ===

impl Verb {
    /// The name in the rules of a Role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Options => "",
        }
    }

    /// Whether it only reads.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
