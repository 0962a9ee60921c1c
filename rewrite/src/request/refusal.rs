//! Why a body is not sent to the host.

use std::fmt;

use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::WireError;

use super::rule::MAX_PERMISSIONS;
use crate::json::{Fault, FieldPath, Malformed, Step};
use crate::mapping::Taken;
use crate::mapping::identity::Unmappable;
use crate::mapping::object::TooLong;

/// A body is refused. The client is at fault, and sending it again does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field.
    pub path: FieldPath,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The body is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The body is no object in protobuf.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The body is an object of another kind than the request is about.
    #[error("the object in the body is not {expected}, as the request says")]
    WrongKind {
        /// As `apps/v1 Deployment`.
        expected: String,
    },
    /// The object is compressed, or not protobuf.
    #[error("the object in the body has a content type or encoding of its own")]
    Wrapped,
    /// The field is there twice; Go would take the last, others the first.
    #[error("duplicate field")]
    Duplicate,
    /// A controller of the host takes the field for another one.
    #[error("must be spelled {expected:?}: the StatefulSet controller reads keys in any case")]
    Spelling {
        /// The key of that one.
        expected: String,
    },
    /// The field has another type than its kind says.
    #[error("must be {expected}")]
    WrongType {
        /// The type, with its article.
        expected: &'static str,
    },
    /// As Kubernetes says it with status 400 (`EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's meta.go).
    #[error("the namespace of the provided object does not match the namespace sent on the request")]
    NamespaceMismatch,
    /// The text cannot be the name of a namespace.
    #[error("Invalid value: {value:?}: not the name of a namespace")]
    NotANamespace {
        /// The text.
        value: String,
    },
    /// The name leads to a host namespace of someone else.
    #[error(transparent)]
    Taken(#[from] Taken),
    /// The name leaves no room for the virtual cluster's.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The user or group stands for nobody of the virtual cluster.
    #[error(transparent)]
    Identity(#[from] Unmappable),
    /// Another value is asked for a label that the guard sets.
    #[error("Invalid value: {wanted:?}: nodes of this cluster have {guard:?}")]
    Conflict {
        /// What the body asks for.
        wanted: String,
        /// What the guard demands.
        guard: String,
    },
    /// The label or annotation is not the client's to write.
    #[error("Forbidden: managed by the operator of the host cluster")]
    Protected,
    /// The value of a Pod Security label is invalid.
    #[error("Invalid value: {value:?}: {detail}")]
    PodSecurity {
        /// What the body asks for.
        value: String,
        /// What it must be.
        detail: String,
    },
    /// Some of the names would have to be mapped, and others not.
    #[error(
        "names of namespaces and of clusterroles need a rule of their own in a virtual cluster, which is about nothing else"
    )]
    MixedNames,
    /// The rules of a role grant more permissions than a role may.
    #[error(
        "must grant at most {MAX_PERMISSIONS} combinations of a verb, an API group, a resource and a name in all rules; use \"*\", or several roles"
    )]
    TooManyPermissions {
        /// The number of permissions up to the refused rule.
        sum: u64,
    },
    /// A name that the host would make up cannot be mapped.
    #[error("a Namespace needs a name")]
    GeneratedName,
}

// === impl Refusal ===

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { path: FieldPath::default(), reason }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Reason::Malformed(malformed).into()
    }
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        Reason::Envelope(error.into()).into()
    }
}

impl Fault for Refusal {
    fn within(mut self, step: Step<'_>) -> Self {
        self.path.push_outer(step);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.reason.fmt(f)
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.reason)
    }
}
