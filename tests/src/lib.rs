//! The test harness of the suites that use real components: a host cluster, the release binaries as separate processes,
//! kubectl.
//!
//! What is *not* here: assertions about Atoll, and uses of its crates. A suite sees what an operator sees: files,
//! processes, ports, exit codes.

pub mod bad_network;
pub mod balancer;
pub mod browser;
pub mod collector;
pub mod compare;
pub mod costly;
pub mod curl;
pub mod eventually;
pub mod host;
pub mod http2;
pub mod image;
pub mod karmada;
pub mod kubectl;
pub mod observability;
pub mod page;
pub mod paths;
pub mod process;
pub mod reads;
pub mod route;
pub mod scraper;
pub mod site;
pub mod traffic;
pub mod virtual_site;

pub use bad_network::{BadNetwork, Quality};
pub use balancer::Balancer;
pub use browser::Page;
pub use curl::Curl;
pub use eventually::{eventually, pause};
pub use host::{HostCluster, Nodes};
pub use http2::Http2;
pub use image::Image;
pub use karmada::Karmada;
pub use kubectl::{Kubectl, Output};
pub use reads::Reads;
pub use route::Route;
pub use scraper::Prometheus;
pub use site::Site;
pub use virtual_site::{Credentials, VirtualSite};
