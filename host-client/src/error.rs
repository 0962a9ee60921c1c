//! What can go wrong, whose fault it is, and whether the request can have been executed.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use http::uri::PathAndQuery;

use super::BoxError;
use super::address::{Address, AddressError};
use super::in_cluster::InClusterError;

/// The configuration does not lead to an API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither `kubeconfig` nor `inCluster`.
    #[error("`host` needs one of `kubeconfig` and `inCluster: true`")]
    Nothing,
    /// A kubeconfig, or a file that it names, cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::OpenError),
    /// `inCluster` outside of a pod.
    #[error(transparent)]
    InCluster(#[from] InClusterError),
    /// One of `host.servers`.
    #[error("`host.servers`")]
    Server(#[source] AddressError),
}

/// No answer from the host's API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// None of its addresses can be connected to.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// It said that the request was not processed (RFC 9113 section 8.7), again and again, or once for a body that is
    /// gone.
    #[error("the API server at {address} refused the request unprocessed")]
    Refused {
        /// Which one.
        address: Address,
        /// As HTTP/2 has it.
        source: h2::Error,
    },
    /// The connection or the stream ended before the answer. The request may have been executed.
    #[error("the API server at {address} did not answer: the connection broke")]
    Broken {
        /// Which one.
        address: Address,
        /// How.
        source: BoxError,
    },
    /// The request's own body failed, so the request was cancelled.
    #[error("the body of the request ended early")]
    Body(#[source] BoxError),
    /// Not a request that can be sent.
    #[error("not a request for an API server")]
    Request(#[from] InvalidRequest),
}

/// Every address was tried.
#[derive(Debug)]
pub struct Unreachable(pub(super) Vec<ConnectError>);

/// One address cannot be connected to. Cheap to clone: everybody who waited for the connection gets one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{address}: {reason}")]
pub struct ConnectError {
    /// Which one.
    pub address: Address,
    /// Why.
    pub reason: ConnectReason,
}

/// How far a connection came.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectReason {
    /// The name has no address.
    #[error("the name cannot be resolved: {0}")]
    Resolve(Arc<std::io::Error>),
    /// Refused, unreachable.
    #[error("no connection: {0}")]
    Tcp(Arc<std::io::Error>),
    /// Not the right certificate, or not TLS at all.
    #[error("no TLS: {0}")]
    Tls(Arc<std::io::Error>),
    /// No HTTP/2: something else than an API server.
    #[error("it does not speak HTTP/2")]
    NotHttp2,
    /// HTTP/2 (or HTTP/1.1, for upgrades) did not begin.
    #[error("no HTTP: {0}")]
    Http(Arc<str>),
    /// Nothing came.
    #[error("no answer in time while {0}")]
    Silent(Stage),
    /// It was away and is not ready again.
    #[error("/readyz answers {0}")]
    NotReady(StatusCode),
    /// It allows no streams, or we opened as many connections as we allow ourselves.
    #[error("it takes no more requests")]
    Full,
    /// This process is going down.
    #[error("the proxy-agent is stopping")]
    Stopping,
}

/// What was going on when patience ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Name and TCP.
    Connecting,
    /// TLS.
    Tls,
    /// The first HTTP/2 round trip.
    Http,
    /// Asking whether it is ready.
    Readiness,
}

/// Why a request is refused before it is sent. A bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The target is not a path.
    #[error("the target is not in origin form")]
    Target,
    /// The address's path and the request's together are no path.
    #[error("{0:?} is no path")]
    Path(String),
    /// HTTP/2 cannot express it.
    #[error("HTTP/2 refuses it: {0}")]
    Http(String),
}

/// Who would have to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Who sent the request.
    Client,
    /// This process.
    Atoll,
    /// The host's API server, or the way to it.
    Host,
}

// === impl HostError ===

impl HostError {
    /// Whether the API server certainly did not execute the request, so that sending it again is safe whatever it is.
    pub fn unsent(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Refused { .. } | Self::Request(_) => true,
            Self::Broken { .. } | Self::Body(_) => false,
        }
    }

    /// Whose fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreachable(unreachable) if unreachable.is_stopping() => Fault::Atoll,
            Self::Unreachable(_) | Self::Refused { .. } | Self::Broken { .. } => Fault::Host,
            Self::Body(_) => Fault::Client,
            Self::Request(_) => Fault::Atoll,
        }
    }
}

// === impl Unreachable ===

impl Unreachable {
    /// What happened at each address, in the order they were tried.
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
            Self::Connecting => "connecting",
            Self::Tls => "TLS was negotiated",
            Self::Http => "HTTP began",
            Self::Readiness => "it was asked whether it is ready",
        })
    }
}

// === impl InvalidRequest ===

impl InvalidRequest {
    pub(super) fn path(prefix: &str, path: &PathAndQuery) -> Self {
        Self::Path(format!("{prefix}{path}"))
    }
}
