//! Why a reconciliation failed.

use kube_wire::status::Reason;
use rewrite::{ClusterName, HostNamespace};

use host_client::api::ApiError;

/// The cause that the admission plugin NamespaceLifecycle gives when it refuses a creation in a namespace that is being
/// deleted (`NamespaceTerminatingCause` in core/v1/types.go).
const TERMINATING: &str = "NamespaceTerminating";

/// Work that could not be finished. All of it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// A request to the host failed.
    #[error("a request to the host failed")]
    Host(#[from] ApiError),
    /// A namespace with the required name exists without our label. The agent never adopts it, because its content
    /// is not ours.
    #[error(
        "namespace {host} of the host exists without the label {label}: delete it, or choose another name for the \
         virtual cluster"
    )]
    Taken {
        /// The namespace.
        host: HostNamespace,
        /// The label that it would have if it were ours.
        label: String,
    },
    /// The host has a virtual cluster whose namespaces can have the same names. It may be one of another agent, or one that
    /// has left the configuration.
    #[error(
        "the host has the virtual cluster {other}, and one of the two names ends with `-` and the other name, so their namespaces \
         could have the same names on the host. Choose another name, or remove {other} from the host with `atoll clusters \
         remove`"
    )]
    NameConflict {
        /// That virtual cluster.
        other: ClusterName,
    },
    /// The namespace is being deleted. The agent creates it again afterwards.
    #[error("namespace {0} of the host is being deleted")]
    Ending(HostNamespace),
    /// The host has not yet deleted an object that belongs to a former root namespace. The agent creates it again
    /// afterwards.
    #[error("{0} belongs to a former root namespace and is being deleted")]
    Former(String),
    /// Others changed the object between each read and write.
    #[error("{0} was changed concurrently at each attempt to write it")]
    Contended(String),
}

/// Whether the object already exists.
pub(super) fn is_already_there(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.reason == Reason::AlreadyExists)
}

/// Whether the namespace is deleted or being deleted, so that nothing can be created in it.
pub(super) fn is_namespace_ending(error: &ApiError) -> bool {
    let Some(status) = error.status() else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 404 || causes.into_iter().any(|cause| cause.cause_type == TERMINATING)
}
