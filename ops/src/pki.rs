//! Certificate authorities and the certificates they issue: the serving CA that signs endpoint certificates, the agent
//! CA, one client CA per virtual cluster.
//!
//! All certificates are ECDSA P-256 with SHA-256, have a random serial number, and are valid from five minutes ago, so
//! that a peer with a slow clock accepts them. What is *not* here: verifying peers and rustls configurations
//! ([`crate::tls`]), writing files ([`crate::files`]), and revocation.
//!
//! Reading order: [`Authority`], then `request` (keys that others have created), then `name` (subjects with several organisations), `der`, `equivalent` (other
//! encodings of a certificate), `pem`, `facts` (the content of certificates, for people).

mod authority;
mod date;
mod der;
mod enrolment;
mod equivalent;
mod facts;
mod name;
mod pem;
mod request;

pub use authority::{Authority, AuthorityError, CLOCK_SKEW, IssueError, MAX_LIFETIME};
pub use facts::{CertificateFacts, FactsError, Validity, with_key_digest};
pub use pem::{PemError, PemPair, certificates_from_pem, key_from_pem, only_certificates};
pub use request::{NewKey, NewKeyError, RequestError, RequestedKey};

pub(crate) use date::system_time;
pub use enrolment::Requester;
pub(crate) use enrolment::{requester, time_of_enrolment};
pub(crate) use equivalent::equivalents;
pub(crate) use facts::credential;
pub(crate) use name::OID_UID;
