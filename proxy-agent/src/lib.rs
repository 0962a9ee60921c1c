//! The edge half of Atoll: dials the proxy-servers (with the crate [`dial`]) and serves the streams that they open.
//!
//! Reading order: `agent` (what it tells the proxy-servers), [`serve`] (the streams of their tunnels), then [`exchange`]
//! for API requests to virtual clusters, or [`layer4`] for physical clusters and destinations. An exchange uses
//! [`caller`] (authentication and authorisation), [`virtual_cluster`] (the components of a virtual cluster),
//! [`host_client`] (the API server) and `translate` (bodies). [`app`] assembles the components, and [`status`] reports
//! their state.
//!
//! | term | meaning | module |
//! |---|---|---|
//! | slice | the nodes of a virtual cluster | `virtual_cluster::nodes` |
//! | root namespace | the host namespace `atoll-root-CLUSTER`: rights in it are the cluster-wide rights of the virtual cluster | `virtual_cluster::provisioner` |
//! | mirror | the copy of a binding of the root namespace in each namespace of the virtual cluster | `virtual_cluster::provisioner` |
//! | provisioned | a virtual cluster whose root namespace, own namespaces and bindings exist | `virtual_cluster::provisioner` |
//! | post-create | the work after the creation of a Namespace: its mirrors are written | `virtual_cluster::provisioner` |
//! | guard | the node selector and the tolerations that keep pods on the slice | `rewrite::guard` |
//! | shared | an object of the host that several virtual clusters see | `virtual_cluster::shared` |
//! | overlay | the labels and annotations of one virtual cluster on a shared object | `virtual_cluster::shared` |
//! | renamed | a custom object without a namespace, which has another name on the host | `exchange` |
//! | projected | an object of the host that virtual clusters can only read, such as the Service `kubernetes` | `exchange` |
//! | seal | the encryption of `continue` tokens | `seal` |
//! | log metadata | headers of a response for the proxy-server's access log: the caller, and whose fault a refusal is | `exchange` |

mod agent;
pub mod app;
mod discovery;
pub mod exchange;
pub mod flags;
pub mod join;
pub mod layer4;
mod nodes;
mod refusal;
mod renew;
mod seal;
pub mod serve;
pub mod status;
#[cfg(test)]
mod tests;
mod translate;

pub use agent_config as config;
pub use app::App;
pub use config::ProxyAgentConfiguration;
