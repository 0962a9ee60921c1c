//! The proxy-server's configuration: the keys of the file, their values, and what the types cannot express.

mod cluster;
mod document;
mod karmada;
mod limits;
mod listeners;

pub use cluster::{ClientCa, Cluster};
pub use document::{Certificate, KeyPair, ProxyServerConfiguration};
pub use karmada::{KEPT_BY, Karmada, LONGEST_NAME, MemberFacts, Through};
pub use limits::{Connections, Limits, fitting};
pub use listeners::{Listeners, ProxySecurity};

#[cfg(test)]
mod tests;
