//! Every refusal of an API request, and the one place that makes a `metav1.Status` of it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::gvr::GroupResource;
use kube_wire::media::{Accept, JSON, PROTOBUF, StatusFormat};
use kube_wire::status::FieldError;
use rewrite::request::Reason;

use crate::access::Refused;
use crate::host::HostError;
use crate::who::Unauthenticated;

/// Why a request got no answer of the host's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Said in full already.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// The host did not answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host's answer is not what the request asked for. Showing it unread could show anything.
    #[error("the host's answer cannot be shown: {0}")]
    Unreadable(String),
}

// === impl Refusal ===

impl Refusal {
    /// A body that cannot be mapped. `resource` and `name` are what it was for.
    pub(crate) fn body(resource: GroupResource<'_>, name: &str, refusal: &rewrite::request::Refusal) -> Self {
        let text = refusal.to_string();
        let field = refusal.path.to_string();
        match &refusal.reason {
            Reason::Taken(taken) => Status::conflict(resource, taken.name.as_str(), &taken.to_string()),
            Reason::Conflict { wanted, guard } => {
                let detail = format!("this cluster's nodes have {guard:?}");
                let error = FieldError::invalid(field, format!("{wanted:?}"), detail);
                Status::invalid(kind_of(resource), name, &[error])
            }
            Reason::Protected => {
                let error = FieldError::forbidden(field, "managed by the operator of the host cluster");
                Status::invalid(kind_of(resource), name, &[error])
            }
            _ => Status::bad_request(text),
        }
        .into()
    }

    /// Whose it is, in a word of the proxy-server's log.
    pub(crate) fn fault(&self) -> &'static str {
        match self {
            Self::Status(status) if status.code < 500 => "client",
            Self::Host(_) => "host",
            _ => "atoll",
        }
    }

    /// In the client's media type, as a kube-apiserver would answer.
    pub(crate) fn into_response(self, accept: Option<&HeaderValue>) -> (Response<()>, Bytes) {
        let status = self.into_status();
        let accept = accept.and_then(|accept| accept.to_str().ok());
        let (media_type, body) = match Accept::parse(accept).status_format() {
            StatusFormat::Json => (JSON, status.to_json()),
            StatusFormat::Protobuf => (PROTOBUF, status.to_protobuf()),
        };
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        if let Some(seconds) = status.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        (response, Bytes::from(body))
    }

    fn into_status(self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Host(error) if error.unsent() => {
                Status::service_unavailable("the API server of the host cluster cannot be reached").with_retry_after(1)
            }
            // It may have been executed: a Retry-After would make clients repeat a write.
            Self::Host(_) => Status::internal_error("the connection to the API server of the host cluster broke"),
            Self::Unreadable(why) => Status::internal_error(&why),
        }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl From<Unauthenticated> for Refusal {
    fn from(error: Unauthenticated) -> Self {
        match error {
            Unauthenticated::Review(error) => Status::from(&error).into(),
            // An API server says no more either: which credential is bad and why is for the log.
            _ => Status::unauthorized("Unauthorized").into(),
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Status::from(refused).into()
    }
}

impl From<&kube_wire::request_info::RequestError> for Refusal {
    fn from(error: &kube_wire::request_info::RequestError) -> Self {
        Status::from(error).into()
    }
}

impl From<kube_wire::query::QueryError> for Refusal {
    fn from(error: kube_wire::query::QueryError) -> Self {
        Status::bad_request(error.to_string()).into()
    }
}

/// Kubernetes says the resource where it does not know the kind.
fn kind_of(resource: GroupResource<'_>) -> kube_wire::gvr::GroupKind<'_> {
    kube_wire::gvr::GroupKind { group: resource.group, kind: resource.resource }
}
