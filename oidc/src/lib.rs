//! OpenID Connect, as far as a resource server and a command line need it.
//!
//! A resource server verifies ID tokens: [`Rules`] has the semantics of one entry of kube-apiserver's `jwt`
//! (`AuthenticationConfiguration` of `apiserver.config.k8s.io`), and [`Issuer`] keeps the signing keys of an issuer, which
//! [`discovery`] has found. A command line needs the other endpoints of an issuer, and the same [`https`] client.
//!
//! Reading order: [`Authenticator`] (all together), [`Rules::user`] (what a token proves), [`Token`] (what a token consists
//! of), [`KeySet`] (which keys there are), [`Issuer`] (when they are fetched).
//!
//! What is *not* here: HTTP servers, clusters, limits, and where tokens come from.

mod authenticator;
mod claims;
pub mod discovery;
pub mod https;
mod issuer;
mod keys;
mod refused;
mod rules;
mod token;
mod url;

pub use authenticator::{Authenticator, Verified};
pub use claims::Claims;
pub use issuer::Issuer;
pub use keys::{KeySet, UnreadableKeys};
pub use refused::Refused;
pub use rules::{CLOCK_SKEW, Prefixed, Rules, User};
pub use token::Token;
pub use url::{HttpsUrl, InvalidUrl};
