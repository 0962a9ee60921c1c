//! The identity of a caller: in the virtual cluster, and on the host.
//!
//! [`HostUser`] is the only identity on the host, and only this crate creates it: from a name that gets the prefix of its
//! virtual cluster, or from a service account in a namespace of the virtual cluster. What is *not* here: credentials
//! ([`authn`](crate::authn)), and rights ([`authz`](crate::authz)).
//!
//! Reading order: [`Caller`], [`host_user`], `account`, `headers` (the headers of a request that impersonates the
//! caller), `names`.

mod account;
mod caller;
pub(crate) mod headers;
pub mod host_user;
mod names;

pub(crate) use account::Account;
pub use caller::{Caller, Kind};
pub use headers::{Inexpressible, USER};
pub use host_user::HostUser;
pub use names::{ANONYMOUS, ATTEMPT, attempt_group};
