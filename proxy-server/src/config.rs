//! The proxy-server's configuration: the keys of the file, their values, and what the types cannot express.

mod certificates;
mod cluster;
mod document;
mod enrolment;
mod grants;
mod karmada;
mod limits;
mod listeners;
mod oidc;
mod pattern;
mod peers;
mod revocations;
mod through;

pub use audit::check as check_audit;
pub use certificates::{AgentCa, KeyPair};
pub use cluster::{ClientCa, Cluster};
pub use document::ProxyServerConfiguration;
pub use enrolment::Enrolment;
pub use grants::{Grant, Grants, Kubeconfigs};
pub use karmada::{KEPT_BY, Karmada, LONGEST_NAME, MemberFacts};
pub use limits::{Connections, Limits, fitting};
pub use listeners::{Listeners, ProxySecurity};
pub use oidc::{ClaimMappings, ClaimValidationRule, IssuerUrl, Oidc, OidcIssuer, PrefixedClaim, UidClaim};
pub use peers::Peers;
pub use revocations::{Credential, InvalidCredential, Revocation, RevocationList};
pub use through::Through;

#[cfg(test)]
mod tests;
