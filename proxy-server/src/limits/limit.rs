//! What a request can exceed.

use ops::metrics::LabelValue;

/// A limit that a stream would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Of one user, in one cluster.
    User,
    /// Of one address.
    Address,
    /// Of all unproven clients of the cluster.
    Unproven,
    /// Of the cluster.
    Cluster,
    /// Of the cluster's part of the tunnel, or of the tunnel.
    Tunnel,
    /// Of requests that the client did not wait for.
    Abandoned,
    /// Of connections.
    Connections,
}

// === impl Limit ===

impl Limit {
    /// The limit, for the operator. The word is that of the metric, which the documentation explains.
    pub fn message(self) -> String {
        format!("the limit {:?} is exceeded", self.label())
    }
}

impl LabelValue for Limit {
    fn label(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Address => "address",
            Self::Unproven => "unproven",
            Self::Cluster => "cluster",
            Self::Tunnel => "tunnel",
            Self::Abandoned => "abandoned",
            Self::Connections => "connections",
        }
    }
}
