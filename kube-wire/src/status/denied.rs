//! The attributes of a denied request.

use std::borrow::Cow;
use std::fmt;

use crate::go_quote::GoQuoted;
use crate::gvr::GroupResource;

/// A denied request: the attributes of the authorisation, with the names that the caller uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied<'a> {
    /// A request for a resource.
    Resource {
        /// The user's name.
        user: &'a str,
        /// `get`, `list`...
        verb: &'a str,
        /// Group and plural.
        resource: GroupResource<'a>,
        /// `status`, `exec`...
        subresource: Option<&'a str>,
        /// `None` at the cluster scope.
        namespace: Option<&'a str>,
        /// `None` for collections.
        name: Option<&'a str>,
    },
    /// A request for a path that is not a resource.
    Path {
        /// The user's name.
        user: &'a str,
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

// === impl Denied ===

impl fmt::Display for Denied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Path { user, verb, path } => {
                write!(f, "User {} cannot {verb} path {}", GoQuoted(user), GoQuoted(path))
            }
            Denied::Resource { user, verb, resource, subresource, namespace, .. } => {
                let (user, group) = (GoQuoted(user), GoQuoted(resource.group));
                let full = match subresource {
                    Some(subresource) => Cow::Owned(format!("{}/{subresource}", resource.resource)),
                    None => Cow::Borrowed(resource.resource),
                };
                let full = GoQuoted(&full);
                write!(f, "User {user} cannot {verb} resource {full} in API group {group} ")?;
                match namespace {
                    Some(namespace) => write!(f, "in the namespace {}", GoQuoted(namespace)),
                    None => f.write_str("at the cluster scope"),
                }
            }
        }
    }
}
