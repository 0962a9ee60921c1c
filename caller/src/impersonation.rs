//! Impersonation, in both directions.
//!
//! Upstream, the agent impersonates the caller: [`HostUser::write`] sets the headers that client-go uses. Downstream, a
//! client may request to impersonate another user ([`Requested`]). The host decides whether the client may do so, like
//! any other permission. The requested identity is mapped like every identity, so `system:masters` of a virtual cluster
//! is an administrator of that cluster, but has no rights on the host.
//!
//! Reading order: [`acting_as`], `requested`, `resolve`.

mod requested;
mod resolve;

#[cfg(test)]
mod tests;

pub use requested::{BadRequest, Requested};
pub use resolve::acting_as;

#[cfg(doc)]
use crate::identity::HostUser;
