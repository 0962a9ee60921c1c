//! All refusals of a CONNECT. kubectl prints only the status line, so the reason phrase contains the message. Other
//! clients show the body, which is one line.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;
use protocol::{ClusterName, Fault, NotConnected};

use crate::registry::NoAgent;
use crate::tunnel::TunnelError;
use protocol::Authority;

/// Why a CONNECT was refused, and the status of the response.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectRefusal {
    /// 400.
    #[error("this proxy accepts only CONNECT; use it as proxy-url with an https server")]
    NotConnect,
    /// 400.
    #[error("the target of CONNECT must be host:port")]
    BadAuthority,
    /// 400.
    #[error("the Host header differs from the target of CONNECT")]
    HostDiffers,
    /// 400.
    #[error(
        "several clusters have the API server {0}: use https://CLUSTER.{1}:{port} as `server`, and set `tls-server-name`",
        port = .0.port()
    )]
    Ambiguous(Authority, String),
    /// 404.
    #[error("{0} is not a cluster of this proxy-server")]
    NoCluster(Authority),
    /// 403.
    #[error("{0} is neither the address nor the name of a cluster of this proxy-server")]
    NotAllowed(Authority),
    /// 403.
    #[error(
        "no access to {0}: for a destination, present a client certificate of the cluster that `atoll-cluster` names, with the \
         group system:masters or atoll:destinations"
    )]
    Forbidden(Authority),
    /// 403.
    #[error("{address} is not among the destinations of cluster {cluster}")]
    NotADestination {
        /// The cluster.
        cluster: ClusterName,
        /// The address.
        address: Authority,
    },
    /// 403.
    #[error("{} is served on port 443, not {}", .0.host(), .0.port())]
    Port(Authority),
    /// 503.
    #[error(transparent)]
    NoAgent(#[from] NoAgent),
    /// 502.
    #[error("the agent of cluster {cluster} could not reach {target}: {}", text(*.reason))]
    Dial {
        /// The cluster.
        cluster: ClusterName,
        /// What the agent dialled.
        target: Target,
        /// The agent's reason.
        reason: Option<NotConnected>,
    },
    /// 502.
    #[error("the agent of cluster {0} could not reach {1}: the agent did not respond in time")]
    Silent(ClusterName, Target),
    /// 502.
    #[error("the agent of cluster {0} has an earlier version, which does not connect to destinations")]
    Old(ClusterName),
    /// 502.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// 429.
    #[error("too many connections to cluster {0}, please try again later")]
    TooMany(ClusterName),
}

/// What an agent dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The API server of the cluster.
    ApiServer,
    /// Another address of its site.
    Destination(Authority),
}

// === impl Target ===

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiServer => f.write_str("its API server"),
            Self::Destination(address) => address.fmt(f),
        }
    }
}

fn text(reason: Option<NotConnected>) -> &'static str {
    reason.map_or("no reason given", NotConnected::text)
}

// === impl ConnectRefusal ===

impl ConnectRefusal {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotConnect | Self::BadAuthority | Self::HostDiffers | Self::Ambiguous(..) => StatusCode::BAD_REQUEST,
            Self::NoCluster(_) => StatusCode::NOT_FOUND,
            Self::NotAllowed(_) | Self::Port(_) | Self::Forbidden(_) | Self::NotADestination { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::NoAgent(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Dial { .. } | Self::Silent(..) | Self::Old(_) | Self::Tunnel(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::NotConnect
            | Self::BadAuthority
            | Self::HostDiffers
            | Self::Ambiguous(..)
            | Self::NoCluster(_)
            | Self::NotAllowed(_)
            | Self::Forbidden(_)
            | Self::NotADestination { .. }
            | Self::Port(_)
            | Self::TooMany(_) => Fault::Client,
            Self::NoAgent(_) | Self::Tunnel(_) => Fault::Tunnel,
            Self::Dial { reason, .. } => reason.map_or(Fault::Host, NotConnected::fault),
            Self::Silent(..) => Fault::Host,
            Self::Old(_) => Fault::Atoll,
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let message = self.to_string();
        let mut response = Response::new(Full::from(format!("{message}\n")));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if matches!(self, Self::NoAgent(_) | Self::TooMany(_)) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        // If it is not a valid reason phrase, the standard one is sent.
        if let Ok(phrase) = ReasonPhrase::try_from(message) {
            response.extensions_mut().insert(phrase);
        }
        response
    }
}
