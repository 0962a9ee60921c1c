//! Acting as somebody else, in both directions.
//!
//! Upstream, the agent acts as the caller: [`HostUser::write`] says so to the host in the headers that client-go uses.
//! Downstream, a client may ask to act as somebody else ([`Requested`]); whether it may is asked of the host like any
//! other permission, and whom that makes it is decided by the same mapping as every identity. So `system:masters` of a
//! virtual cluster is an administrator of that cluster and nothing on the host.
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
