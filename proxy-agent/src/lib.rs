//! The edge half of Atoll: dials the proxy-servers and serves the streams that they open.
//!
//! In reading order: [`dial`] (tunnels), [`serve`] (streams), [`offers`] (what may be asked for), then [`exchange`] for API requests to virtual clusters or
//! [`layer4`] for physical clusters and destinations. An exchange is `who` (is asking), `access` (may they), `policy`
//! (what is done with it), [`host`] (the API server), `translate` (bodies); `clusters`, `namespaces` and `root` keep what
//! a virtual cluster consists of, and [`gate`] what the host itself refuses. [`app`] puts the parts together, and
//! [`status`] is what it says of them.

pub mod access;
pub mod app;
pub mod clusters;
pub mod config;
pub mod dial;
mod discovery;
pub mod exchange;
pub mod flags;
pub mod gate;
pub mod host;
pub mod host_tokens;
pub mod impersonate;
pub mod layer4;
pub mod namespaces;
mod nodes;
pub mod offers;
mod own_rights;
pub mod pod_security;
mod policy;
pub mod ready;
mod refusal;
mod roles;
pub mod root;
mod seal;
pub mod serve;
mod shared;
pub mod status;
mod translate;
pub mod who;

pub use app::App;
pub use config::ProxyAgentConfiguration;
