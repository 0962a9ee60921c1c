//! Limits of clients in this process and in its tunnels, so that no client can use up the capacity for others.
//!
//! ```text
//! connection -> Connections        in total, by address, by cluster, by user
//! request    -> Abandoned          by user or network, in each cluster; for all users of a cluster
//!            -> Streams            by user or address, by cluster
//!            -> Tunnel::reserve    by cluster: its fair share of the tunnel
//! ```
//! A *proven* client has shown a certificate of the cluster, or a token that an agent has accepted. All other clients are
//! unproven. They count by address, and get a small part of every limit, so that they cannot use up the limits of
//! proven clients.
//!
//! What is *not* here: the numbers ([`crate::config::Limits`]), and the responses (in `endpoint` and `connect`).

mod abandoned;
mod connections;
mod counts;
mod limit;
mod network;
mod streams;
mod tokens;
mod user;

use std::sync::Arc;

use ops::metrics::{Family, Registry};
use protocol::ClusterName;

pub use abandoned::{AbandonGuard, Abandoned, Party};
pub use connections::{ConnectionPermit, Connections};
pub use limit::Limit;
pub use network::Network;
pub use streams::{Client, StreamPermit, Streams};
pub use tokens::Tokens;
pub use user::User;

use crate::config;

/// All counters of clients.
#[derive(Debug)]
pub struct Limits {
    /// Their connections.
    pub connections: Arc<Connections>,
    /// Their requests.
    pub streams: Arc<Streams>,
    /// Requests that they reset before the response.
    pub abandoned: Arc<Abandoned>,
    /// Their tokens.
    pub tokens: Tokens,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams_per_connection: u32,
    refused: Family<Refused, ops::metrics::Counter>,
}

ops::label_set! {
    /// A request that exceeded a limit.
    struct Refused {
        cluster: Arc<str>,
        limit: Limit,
    }
}

// === impl Limits ===

impl Limits {
    /// Counters at zero. `connections` has the limits of connections.
    pub fn new(config: &config::Limits, connections: config::Connections, metrics: &Registry) -> Arc<Self> {
        let streams = Streams::new(*config.streams_per_user, *config.streams_per_address, *config.streams_per_cluster);
        let connections = Connections::new(connections);
        let (open, running) = (Arc::clone(&connections), Arc::clone(&streams));
        metrics.observe("atoll_client_connections", "Open client connections.", move || {
            i64::try_from(open.count()).unwrap_or(i64::MAX)
        });
        metrics.observe("atoll_client_streams", "Client requests whose response has not ended.", move || {
            i64::try_from(running.count()).unwrap_or(i64::MAX)
        });
        let help = "Client requests refused with 429, by cluster and exceeded limit.";
        Arc::new(Self {
            connections,
            streams,
            abandoned: Arc::default(),
            tokens: Tokens::default(),
            streams_per_connection: *config.streams_per_connection,
            refused: metrics.counters("atoll_refused_streams_total", help),
        })
    }

    /// Counts a request to a cluster that exceeded a limit.
    pub fn count_refused(&self, cluster: &ClusterName, limit: Limit) {
        self.refused.with(&Refused { cluster: cluster.as_str().into(), limit }).inc();
    }
}
