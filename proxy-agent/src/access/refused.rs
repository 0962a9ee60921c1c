//! How no is said: kube-apiserver's own sentence, in the names of the virtual cluster.

use kube_wire::Status;
use kube_wire::gvr::GroupResource;
use kube_wire::status::Denied;
use rewrite::{Mapping, VirtualNamespace};

use super::{Attributes, ReviewError};
use crate::who::Caller;

/// The caller does not get what it asks for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It may not, or it asks for nonsense; said in full.
    #[error("{0}")]
    Said(Box<Status>),
    /// The host could not say.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

// === impl Refused ===

impl Refused {
    /// 403 for a resource: `pods "x" is forbidden: User "eve" cannot get resource "pods" in API group "" in the
    /// namespace "edge"`. What was asked in the root namespace was `at the cluster scope`, which it is for the client.
    pub fn denied(mapping: &Mapping, caller: &Caller, attributes: &Attributes<'_>, why: &str) -> Self {
        let shown = |text: &str| mapping.readable(text).unwrap_or_else(|| text.to_owned());
        let name = shown(attributes.name);
        let namespace = mapping.member(attributes.namespace.as_ref());
        let denied = Denied::Resource {
            user: caller.virtual_name(),
            verb: attributes.verb,
            resource: GroupResource { group: attributes.group, resource: attributes.resource },
            subresource: Some(attributes.subresource).filter(|subresource| !subresource.is_empty()),
            namespace: namespace.map(VirtualNamespace::as_str),
            name: Some(&*name).filter(|name| !name.is_empty()),
        };
        Status::forbidden(denied, &shown(why)).into()
    }
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self::Said(Box::new(status))
    }
}

/// What is said already, or 503.
impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Said(status) => *status,
            Refused::Review(error) => Self::from(&error),
        }
    }
}
