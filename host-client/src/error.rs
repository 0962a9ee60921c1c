//! Errors, whose fault they are, and whether the request may have been executed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::uri::PathAndQuery;

use super::BoxError;
use super::in_cluster::InClusterError;
use kubeconfig::{Address, AddressError};

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It has neither `kubeconfig` nor `inCluster`.
    #[error("`host` needs one of `kubeconfig` and `inCluster: true`")]
    Nothing,
    /// A kubeconfig, or a file that it names, cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::OpenError),
    /// It has `inCluster`, but the process does not run in a pod.
    #[error(transparent)]
    InCluster(#[from] InClusterError),
    /// An entry of `host.servers` is invalid.
    #[error("`host.servers`")]
    Server(#[source] AddressError),
}

/// The host's API server did not respond.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The client cannot connect to any of its addresses.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// It repeatedly refused the request without processing it (RFC 9113 section 8.7), or once if the body cannot be
    /// sent again.
    #[error("the API server at {address} refused the request without processing it")]
    Refused {
        /// The address.
        address: Address,
        /// The HTTP/2 error.
        source: h2::Error,
    },
    /// The connection or the stream ended before the response. The request may have been executed.
    #[error("the connection to the API server at {address} broke before it responded")]
    Broken {
        /// The address.
        address: Address,
        /// The cause.
        source: BoxError,
    },
    /// It did not respond in time. The request may have been executed.
    #[error("the API server did not respond within {} s", .0.as_secs())]
    Silent(Duration),
    /// The body of the request failed, so the request was cancelled.
    #[error("the body of the request ended early")]
    Body(#[source] BoxError),
    /// The request is invalid.
    #[error("invalid request to the API server")]
    Request(#[from] InvalidRequest),
}

/// The client has tried every address.
#[derive(Debug)]
pub struct Unreachable(pub(super) Vec<ConnectError>);

/// The client cannot connect to one address. It is cheap to clone, because all requests that waited for the connection
/// get one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{address}: {reason}")]
pub struct ConnectError {
    /// The address.
    pub address: Address,
    /// The reason.
    pub reason: ConnectReason,
}

/// Why a connection failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectReason {
    /// The name has no address.
    #[error("the name cannot be resolved: {0}")]
    Resolve(Arc<std::io::Error>),
    /// The connection was refused, or the address is unreachable.
    #[error("cannot connect: {0}")]
    Tcp(Arc<std::io::Error>),
    /// The TLS handshake failed, for example because of the certificate.
    #[error("TLS handshake failed: {0}")]
    Tls(Arc<std::io::Error>),
    /// The server does not support HTTP/2, so it is not an API server.
    #[error("the server does not support HTTP/2")]
    NotHttp2,
    /// The HTTP/2 handshake (or that of HTTP/1.1, for upgrades) failed.
    #[error("HTTP handshake failed: {0}")]
    Http(Arc<str>),
    /// The server did not respond in time.
    #[error("no response in time during {0}")]
    Silent(Stage),
    /// It was down, and is not ready yet.
    #[error("/readyz returned {0}")]
    NotReady(StatusCode),
    /// It allows no streams, or the maximum number of connections is open.
    #[error("the server accepts no more requests")]
    Full,
    /// This process is stopping.
    #[error("the proxy-agent is stopping")]
    Stopping,
}

/// The stage in which a timeout expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Resolving the name, and TCP.
    Connecting,
    /// The TLS handshake.
    Tls,
    /// The first HTTP/2 round trip.
    Http,
    /// The check whether it is ready.
    Readiness,
}

/// Why a request is not sent. This is a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The target is not a path.
    #[error("the target is not in origin form")]
    Target,
    /// The path of the address and that of the request together are not a valid path.
    #[error("{0:?} is not a path")]
    Path(String),
    /// HTTP/2 cannot express it.
    #[error("HTTP/2 cannot express the request: {0}")]
    Http(String),
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The client's.
    Client,
    /// That of this process.
    Atoll,
    /// That of the host's API server, or of the network.
    Host,
}

// === impl HostError ===

impl HostError {
    /// Whether the API server certainly did not execute the request, so that it can be sent again.
    pub fn unsent(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Refused { .. } | Self::Request(_) => true,
            Self::Broken { .. } | Self::Silent(_) | Self::Body(_) => false,
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreachable(unreachable) if unreachable.is_stopping() => Fault::Atoll,
            Self::Unreachable(_) | Self::Refused { .. } | Self::Broken { .. } | Self::Silent(_) => Fault::Host,
            Self::Body(_) => Fault::Client,
            Self::Request(_) => Fault::Atoll,
        }
    }
}

// === impl Unreachable ===

impl Unreachable {
    /// The error of each address, in the order of the attempts.
    pub fn attempts(&self) -> &[ConnectError] {
        &self.0
    }

    fn is_stopping(&self) -> bool {
        let mut reasons = self.0.iter().map(|attempt| &attempt.reason);
        reasons.any(|reason| matches!(reason, ConnectReason::Stopping))
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no API server can be reached")?;
        for (index, attempt) in self.0.iter().enumerate() {
            let separator = if index == 0 { " (" } else { "; " };
            write!(f, "{separator}{attempt}")?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

impl std::error::Error for Unreachable {}

// === impl Stage ===

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connecting => "name resolution and TCP connect",
            Self::Tls => "the TLS handshake",
            Self::Http => "the HTTP handshake",
            Self::Readiness => "the check of /readyz",
        })
    }
}

// === impl InvalidRequest ===

impl InvalidRequest {
    pub(super) fn path(prefix: &str, path: &PathAndQuery) -> Self {
        Self::Path(format!("{prefix}{path}"))
    }
}
