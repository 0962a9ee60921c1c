//! A refusal.

use std::sync::Arc;

/// The virtual cluster has reached a limit. In the words of the admission plugin ResourceQuota (`checkRequest` in
/// apiserver's `pkg/admission/plugin/resourcequota`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// That for the number of objects of a resource.
    #[error(
        "exceeded quota: atoll, requested: count/{resource}=1, used: count/{resource}={used}, \
         limited: count/{resource}={limit}"
    )]
    Objects {
        /// The resource: `secrets` or `deployments.apps`.
        resource: Arc<str>,
        /// The number of existing objects.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// That for bytes.
    #[error("exceeded quota: atoll, requested: storage={requested}, used: storage={used}, limited: storage={limit}")]
    Bytes {
        /// The length of the object.
        requested: u64,
        /// The length of all existing objects.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// That for the bytes of recent versions.
    #[error("exceeded quota: atoll, requested: written={requested}, used: written={used}, limited: written={limit}")]
    Written {
        /// The length of the object.
        requested: u64,
        /// The length of all versions of the last ten minutes.
        used: u64,
        /// The limit.
        limit: u64,
    },
}
