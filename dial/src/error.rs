//! Errors of an attempt to establish a tunnel.

use std::time::Duration;

use protocol::{Authority, Refusal};

/// The time limit for TCP, TLS and the registration, which need a few round trips.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("{server} cannot be resolved")]
    Resolve {
        /// The configured name.
        server: Authority,
        /// The error of the resolver.
        source: std::io::Error,
    },
    /// TCP failed. The text is the address.
    #[error("cannot connect to {0}")]
    Connect(String, #[source] std::io::Error),
    /// The HTTP proxy of the site refused the connection. The text is its status line.
    #[error("the HTTPS proxy answered CONNECT with {0}")]
    Egress(String),
    /// TLS failed, for example because of the certificate of the proxy-server.
    #[error("TLS with the proxy-server failed")]
    Tls(#[source] std::io::Error),
    /// The proxy-server refused the certificate of the agent. In TLS 1.3, the client learns this only after its part of the
    /// handshake (RFC 8446, section 2).
    #[error(
        "the proxy-server does not accept the certificate of this process (`identity.certificate`); see the log of the proxy-server"
    )]
    Certificate(#[source] rustls::Error),
    /// The connection broke before the response.
    #[error("the connection ended during the registration")]
    Http(#[source] hyper::Error),
    /// The proxy-server refused the registration.
    #[error("the proxy-server refused the registration ({reason:?}): {refusal}", reason = refusal.reason)]
    Refused {
        /// Its reason.
        refusal: Refusal,
    },
    /// There was no response in time.
    #[error("no response within {} s", CONNECT_TIMEOUT.as_secs())]
    Silent,
    /// The HTTP/2 handshake failed, or the connection broke.
    #[error("the HTTP/2 handshake of the tunnel failed")]
    Tunnel(#[source] h2::Error),
}
