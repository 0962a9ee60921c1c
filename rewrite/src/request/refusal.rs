//! Refusals of bodies.

use std::fmt;

use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::WireError;

use super::permissions::MAX_PERMISSIONS;
use crate::json::{Fault, FieldPath, Malformed, Step};
use crate::mapping::Taken;
use crate::mapping::identity::Unmappable;
use crate::mapping::object::TooLong;
use crate::protobuf::EachError;

/// A body is refused. This is the client's fault, and a retry is useless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field.
    pub path: FieldPath,
    /// The error.
    pub reason: Reason,
}

/// An error about a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The body is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The body is not an object in protobuf.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The kind of the object in the body differs from that of the request.
    #[error("the object in the body is not {expected}, as the request says")]
    WrongKind {
        /// As `apps/v1 Deployment`.
        expected: String,
    },
    /// The object is compressed, or is not protobuf.
    #[error("the envelope of the object has a content type or encoding")]
    Wrapped,
    /// The field is repeated. Go uses the last one, others the first.
    #[error("duplicate field")]
    Duplicate,
    /// A controller of the host would read the field as another one.
    #[error("must be spelled {expected:?}: the StatefulSet controller reads keys in any case")]
    Spelling {
        /// The key of that other field.
        expected: String,
    },
    /// The type of the field is wrong for the kind.
    #[error("must be {expected}")]
    WrongType {
        /// The type, with its article.
        expected: &'static str,
    },
    /// As in Kubernetes, with status 400 (`EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's meta.go).
    #[error("the namespace of the provided object does not match the namespace sent on the request")]
    NamespaceMismatch,
    /// The text cannot be the name of a namespace.
    #[error("Invalid value: {value:?}: not the name of a namespace")]
    NotANamespace {
        /// The text.
        value: String,
    },
    /// The host namespace of the name belongs to another virtual cluster or to the host.
    #[error(transparent)]
    Taken(#[from] Taken),
    /// The name is too long, because the name of the virtual cluster is appended.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The user or group cannot belong to the virtual cluster.
    #[error(transparent)]
    Identity(#[from] Unmappable),
    /// The body requests another value for a label of the guard.
    #[error("Invalid value: {wanted:?}: nodes of this cluster have {guard:?}")]
    Conflict {
        /// What the body asks for.
        wanted: String,
        /// What the guard requires.
        guard: String,
    },
    /// Clients cannot write this label or annotation.
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
    /// Some of the names need mapping, and others must not be mapped.
    #[error(
        "in a virtual cluster, names of namespaces or clusterroles need a rule of their own: move other resources to another rule"
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
    /// A name that the host would generate cannot be mapped.
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

impl From<EachError> for Refusal {
    fn from(error: EachError) -> Self {
        match error {
            EachError::Wire(error) => error.into(),
            EachError::Repeated(_) => Reason::Duplicate.into(),
        }
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
