//! All refusals of an endpoint, and the only place that turns them into a `metav1.Status`.

use bytes::Bytes;
use http::{HeaderValue, Response};
use kube_wire::Status;
use kube_wire::request_info::is_health_check;
use kube_wire::status::{Reason, TOO_MANY_REQUESTS, TryAgain, http_response};
use ops::tls::ClientCertificateError;
use protocol::Fault;
use protocol::encoding::UnknownEncoding;

use super::body::ResponseBody;
use crate::limits::Limit;
use crate::registry::NoAgent;
use crate::tunnel::TunnelError;

/// The time after which a client may try again, in seconds.
const RETRY_AFTER: u32 = 1;

/// Why a request was refused here. The comments say whose fault it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The client's: the target is no path.
    #[error("the request target is not a path of the Kubernetes API")]
    BadTarget,
    /// The client's: see `head`.
    #[error("the Connection header lists headers that it must not remove")]
    BadConnectionHeader,
    /// The client's: Host, SNI and CONNECT must agree.
    #[error("the Host header names another cluster than the connection")]
    HostDiffers,
    /// The client's: CONNECT opens a connection, and an endpoint has only resources.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// The client's: neither SNI nor path names a cluster.
    #[error("no cluster is named: use https://<cluster>.<domain> or the path /clusters/<cluster>/")]
    NoClusterNamed,
    /// The client's.
    #[error("virtual cluster {0:?} not found")]
    NoCluster(String),
    /// The client's.
    #[error("Unauthorized")]
    Certificate(#[from] ClientCertificateError),
    /// The client's: see [`crate::revocations`].
    #[error("Unauthorized")]
    Revoked,
    /// The client's: a token of the OIDC issuer.
    #[error("Unauthorized")]
    Token(oidc::Refused),
    /// The issuer's, or that of the network to it: the token may be valid.
    #[error("the keys of the OIDC issuer are not available")]
    NoKeys,
    /// The client's: see [`crate::revocations`].
    #[error("Unauthorized")]
    RevokedToken,
    /// The tunnel's: no agent is connected.
    #[error(transparent)]
    NoAgent(NoAgent),
    /// The same for a health check.
    #[error(transparent)]
    NotReady(NoAgent),
    /// The tunnel's.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// The tunnel's: the agent has chosen an encoding that this proxy-server does not accept.
    #[error(transparent)]
    Encoding(#[from] UnknownEncoding),
    /// The host's.
    #[error("the agent did not respond in time")]
    Silent,
    /// The client's: a limit is exceeded.
    #[error("{TOO_MANY_REQUESTS}")]
    TooMany(Limit),
}

// === impl Refusal ===

impl Refusal {
    /// No agent is connected that could answer for this path.
    pub(super) fn no_agent(absent: NoAgent, path: &str) -> Self {
        if is_health_check(path) { Self::NotReady(absent) } else { Self::NoAgent(absent) }
    }

    /// In the media type that the client accepts, like a response of kube-apiserver.
    pub(super) fn response(status: &Status, accept: Option<&HeaderValue>) -> Response<ResponseBody> {
        http_response(status, accept).map(|body| ResponseBody::Whole(Some(Bytes::from(body))))
    }

    /// The message for the operator, if it says more than that for the client.
    pub(super) fn operator_message(&self) -> Option<String> {
        match self {
            Self::TooMany(limit) => Some(limit.message()),
            Self::Revoked => Some("the client certificate is revoked".to_owned()),
            Self::RevokedToken => Some("the token is revoked".to_owned()),
            Self::Token(refused) => Some(refused.to_string()),
            _ => None,
        }
    }

    /// Whose fault it is, for the log.
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::BadTarget
            | Self::BadConnectionHeader
            | Self::HostDiffers
            | Self::MethodNotAllowed
            | Self::NoClusterNamed
            | Self::NoCluster(_)
            | Self::Certificate(_)
            | Self::Revoked
            | Self::Token(_)
            | Self::RevokedToken
            | Self::TooMany(_) => Fault::Client,
            Self::NoKeys => Fault::Atoll,
            Self::NoAgent(_) | Self::NotReady(_) | Self::Tunnel(_) | Self::Encoding(_) => Fault::Tunnel,
            Self::Silent => Fault::Host,
        }
    }

    /// The Status that the client gets.
    pub(super) fn status(&self) -> Status {
        let message = self.to_string();
        match self {
            Self::BadTarget | Self::BadConnectionHeader | Self::HostDiffers => Status::bad_request(message),
            Self::MethodNotAllowed => Status::failure(405, Reason::MethodNotAllowed, message),
            Self::NoClusterNamed | Self::NoCluster(_) => Status::failure(404, Reason::NotFound, message),
            // kube-apiserver's message contains no more either. The log says why a certificate or a token is refused.
            Self::Certificate(_) | Self::Revoked | Self::Token(_) | Self::RevokedToken => Status::unauthorized(message),
            Self::NoAgent(_) | Self::NoKeys => Status::service_unavailable(message).with_retry_after(RETRY_AFTER),
            // With a Retry-After, client-go repeats the request ten times, a second apart, before it reports the error,
            // and Karmada would notice late that a member is not ready. An API server that is not ready sends none
            // either.
            Self::NotReady(_) => Status::service_unavailable(message),
            Self::Tunnel(TunnelError::Full(_) | TunnelError::Unsent { .. }) => {
                Status::service_unavailable(message).with_retry_after(RETRY_AFTER)
            }
            // The request may have been executed: a Retry-After would make clients repeat a write.
            Self::Tunnel(_) | Self::Encoding(_) => Status::failure(502, Reason::InternalError, message),
            Self::Silent => Status::timeout(&message, 0),
            Self::TooMany(_) => TryAgain::TooManyRequests(&message).after(RETRY_AFTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{StatusCode, header};

    #[test]
    fn a_refusal_by_a_limit_has_a_retry_after() {
        let accept = HeaderValue::from_static("application/vnd.kubernetes.protobuf, application/json");
        let response = Refusal::response(&Refusal::TooMany(Limit::User).status(), Some(&accept));
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let ResponseBody::Whole(Some(body)) = response.into_body() else { panic!("a refusal is whole") };
        let status = Status::from_protobuf(&body).unwrap();
        assert_eq!((status.code, status.reason), (429, Reason::TooManyRequests));
        assert_eq!(status.message, "Too many requests, please try again later.");
    }

    #[test]
    fn a_failed_health_check_has_no_retry_after() {
        let absent = NoAgent { cluster: "ke-beijing".parse().unwrap(), since: None };
        for (path, again) in [("/api/v1/pods", true), ("/readyz", false), ("/livez/ping", false), ("/readyzz", true)] {
            let response = Refusal::response(&Refusal::no_agent(absent.clone(), path).status(), None);
            assert_eq!(response.status(), 503, "{path}");
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), again, "{path}");
        }
    }
}
