//! The caller of a request to a virtual cluster: authentication, authorisation, impersonation.
//!
//! The host decides everything. [`authn`] asks it for the owner of a token, and [`authz`] asks it what a caller may do,
//! with the reviews in [`reviews`]. The answers are cached for seconds, and a permission to watch for up to five minutes. What is
//! *not* here: which rights a request needs, and the path of a request.
//!
//! Reading order: [`identity`] (names of callers), [`reviews`] (requests to the host), `memo` (the cache of answers),
//! [`authn`], [`authz`], [`impersonation`].

pub mod authn;
pub mod authz;
pub mod identity;
pub mod impersonation;
mod memo;
pub mod reviews;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use authn::Authenticator;
pub use authz::Authorizer;
pub use identity::{Caller, HostUser};
pub use memo::Condition;
