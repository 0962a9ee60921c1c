//! The proxy-server's configuration: the keys of the file, their values, and what the types cannot express.

mod certificates;
mod cluster;
mod document;
mod karmada;
mod limits;
mod listeners;
mod peers;

pub use certificates::{Certificate, KeyPair};
pub use cluster::{ClientCa, Cluster};
pub use document::ProxyServerConfiguration;
pub use karmada::{KEPT_BY, Karmada, LONGEST_NAME, MemberFacts, Through};
pub use limits::{Connections, Limits, fitting};
pub use listeners::{Listeners, ProxySecurity};
pub use peers::Peers;

#[cfg(test)]
mod tests;
