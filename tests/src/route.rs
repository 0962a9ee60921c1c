//! The routes of clients to an endpoint.

/// The default domain of a proxy-server.
pub(crate) const DOMAIN: &str = "atoll.internal";

/// How a client reaches an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// CONNECT to `CLUSTER.atoll.internal:443` at the HTTP proxy.
    Proxy,
    /// Directly, with the name of the cluster in the path.
    Path,
    /// Directly, with the name of the cluster in the TLS handshake.
    Sni,
}

// === impl Route ===

impl Route {
    /// All routes.
    pub const ALL: [Self; 3] = [Self::Proxy, Self::Path, Self::Sni];
}
