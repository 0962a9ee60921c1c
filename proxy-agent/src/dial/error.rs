//! Why an attempt to dial fails.

use std::time::Duration;

use protocol::{Authority, Refusal};

/// For all of it: name, TCP, TLS, registration. A few round trips of a bad line.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No address.
    #[error("{server} cannot be resolved")]
    Resolve {
        /// As configured.
        server: Authority,
        /// What the resolver said.
        source: std::io::Error,
    },
    /// No TCP connection.
    #[error("cannot connect to {0}")]
    Connect(String, #[source] std::io::Error),
    /// The corporate proxy said no.
    #[error("the HTTPS proxy answered CONNECT with {0}")]
    Egress(String),
    /// The proxy-server is not who it should be.
    #[error("TLS with the proxy-server failed")]
    Tls(#[source] std::io::Error),
    /// TLS 1.3 tells this only after the client's handshake (RFC 8446, section 2).
    #[error(
        "the proxy-server does not accept the certificate of this agent (`identity.certificate`); its log says why"
    )]
    Certificate(#[source] rustls::Error),
    /// The connection broke before the answer.
    #[error("the connection ended during the registration")]
    Http(#[source] hyper::Error),
    /// The proxy-server said no.
    #[error("the proxy-server refused the registration ({reason:?}): {refusal}", reason = refusal.reason)]
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// Nothing came.
    #[error("no response within {} s", CONNECT_TIMEOUT.as_secs())]
    Silent,
    /// HTTP/2 could not begin.
    #[error("the HTTP/2 handshake of the tunnel failed")]
    Tunnel(#[source] h2::Error),
}
