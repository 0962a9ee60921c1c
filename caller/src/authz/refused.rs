//! The message of a refusal: that of kube-apiserver, in virtual names.

use kube_wire::Status;
use kube_wire::gvr::GroupResource;
use kube_wire::status::Denied;
use rewrite::{Mapping, VirtualNamespace};

use crate::identity::Caller;
use crate::reviews::{Attributes, ReviewError};

/// The request is refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The caller may not do this, or the request is invalid. The Status is complete.
    #[error("{0}")]
    Status(Box<Status>),
    /// The host did not answer the review.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

// === impl Refused ===

impl Refused {
    /// 403 for a resource: `pods "x" is forbidden: User "eve" cannot get resource "pods" in API group "" in the
    /// namespace "edge"`. The root namespace is shown as `at the cluster scope`.
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
        Self::Status(Box::new(status))
    }
}

/// The Status. It is a 503 if the host did not answer.
impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Status(status) => *status,
            Refused::Review(error) => Self::from(&error),
        }
    }
}
