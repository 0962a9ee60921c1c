//! The cloud half of Atoll: clients in front, agents' tunnels behind.
//!
//! The path of a request, in reading order: [`connect`] (the HTTP proxy that `proxy-url` names) or the direct listener,
//! then [`endpoint`] (TLS, cluster, caller), then a [`tunnel`] from the [`registry`]. [`limits`] counts connections and
//! requests, and `request_metrics` measures them. Agents connect to [`agents`], and [`links`] measures the networks to
//! them. [`peers`] forwards requests between proxy-servers. [`revocations`] ends connections
//! with revoked credentials. `issuers` has the OIDC issuer of each cluster. [`workers`] are the threads of all these. [`app`] assembles
//! the parts, and [`status`] reports their state.
//!
//! If configured, agents add virtual clusters by themselves ([`grants`]), and [`karmada`] makes virtual clusters members of a control plane.
//!
//! What is *not* here: Kubernetes bodies of clients. Nothing in this crate parses one, and it does not depend on
//! `rewrite`.

pub mod agents;
pub mod app;
mod attempts;
pub mod client_cas;
pub mod config;
pub mod connect;
pub mod endpoint;
pub mod enrolment;
pub mod flags;
pub mod grants;
mod issuers;
pub mod karmada;
pub mod limits;
pub mod links;
pub mod peers;
pub mod registry;
pub mod revocations;
pub mod status;
pub mod tunnel;
pub mod user_certificates;
pub mod workers;

pub use app::App;
pub use config::ProxyServerConfiguration;
