//! Why something that should be there is not.

use kube_wire::status::Reason;
use rewrite::HostNamespace;

use crate::host::api::ApiError;

/// The cause that the admission plugin NamespaceLifecycle gives when it refuses a creation in a namespace that is being
/// deleted (`NamespaceTerminatingCause` in core/v1/types.go).
const TERMINATING: &str = "NamespaceTerminating";

/// Work that could not be finished. All of it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The host did not do it.
    #[error("the host did not do what was asked")]
    Host(#[from] ApiError),
    /// A namespace of somebody else has the name that we need. It is never adopted: what is in it is not ours.
    #[error(
        "namespace {host} of the host exists and is not labelled {label}: delete it, or call the virtual cluster \
         otherwise"
    )]
    Taken {
        /// The namespace.
        host: HostNamespace,
        /// The label that it would have if it were ours.
        label: String,
    },
    /// It is being deleted; afterwards it will be made anew.
    #[error("namespace {0} of the host is being deleted")]
    Ending(HostNamespace),
    /// Others changed it each time that we had read it.
    #[error("{0} changes faster than it can be repaired")]
    Contended(String),
}

/// Whether the object exists already, so that creating it was not needed.
pub(super) fn is_already_there(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.reason == Reason::AlreadyExists)
}

/// Whether the namespace is gone or going, so that nothing can be created in it.
pub(super) fn is_namespace_ending(error: &ApiError) -> bool {
    let Some(status) = error.status() else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 404 || causes.into_iter().any(|cause| cause.cause_type == TERMINATING)
}
