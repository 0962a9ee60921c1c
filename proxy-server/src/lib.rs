//! The cloud half of Atoll: clients in front, agents' tunnels behind.
//!
//! A request's way, in reading order: [`connect`] (the HTTP proxy that `proxy-url` names) or the direct listener, then
//! [`endpoint`] (TLS, which cluster, who asks), then a [`tunnel`] out of the [`registry`]. What it may take on that way is
//! counted in [`limits`]. Agents come in through [`agents`]. [`app`] puts the parts together, and [`status`] is what it says
//! of them.
//!
//! Beside it, [`karmada`] makes virtual clusters members of a control plane, if that is wanted.
//!
//! What is *not* here: Kubernetes bodies of clients. Nothing in this crate parses one, and it does not depend on
//! `rewrite`.

pub mod agents;
pub mod app;
pub mod client_cas;
pub mod config;
pub mod connect;
pub mod endpoint;
pub mod flags;
pub mod karmada;
pub mod limits;
pub mod registry;
pub mod status;
pub mod tunnel;

pub use app::App;
pub use config::ProxyServerConfiguration;
