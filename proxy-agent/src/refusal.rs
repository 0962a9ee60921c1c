//! Every refusal of an API request, and the one place that makes a `metav1.Status` of it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::gvr::{GroupKind, GroupResource};
use kube_wire::media::{Accept, JSON, PROTOBUF, StatusFormat};
use kube_wire::status::{CauseType, FieldError};
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
    /// Said of a body or its media type, which is not mapped. See `exchange::own_words`.
    #[error("{}", .0.status.message)]
    Unmapped(Box<Unmapped>),
    /// The host did not answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host's answer is not what the request asked for. Showing it unread could show anything.
    #[error("the host's answer cannot be shown: {0}")]
    Unreadable(String),
}

/// What is said of a request that is not mapped.
#[derive(Debug)]
pub(crate) struct Unmapped {
    /// Our words.
    pub(crate) status: Status,
    /// Whether there are better ones.
    pub(crate) ask: Ask,
}

/// Who may be shown such a request, for a better word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Every server: the bytes are not what their media type says, so that nobody can take them for anything.
    Anybody,
    /// kube-apiserver's own resources, which store nothing on a dry run.
    KubeApiserver,
    /// Every server, but without the body: the media type is what is wrong.
    WithoutBody,
    /// Nobody: the host would take it, and only this virtual cluster does not.
    Nobody,
}

// === impl Unmapped ===

impl Unmapped {
    /// A refusal that `ask` may better.
    pub(crate) fn refusal(status: Status, ask: Ask) -> Refusal {
        Refusal::Unmapped(Box::new(Self { status, ask }))
    }
}

// === impl Refusal ===

impl Refusal {
    /// A body that cannot be mapped. `name` is that of the object which it was for.
    pub(crate) fn body(
        resource: GroupResource<'_>,
        kind: GroupKind<'_>,
        name: &str,
        refusal: &rewrite::request::Refusal,
    ) -> Self {
        let field = refusal.path.to_string();
        let invalid = |error: FieldError| Status::invalid(kind, name, &[error]);
        let (status, ask) = match &refusal.reason {
            Reason::Taken(taken) => (Status::conflict(resource, taken.name.as_str(), &taken.to_string()), Ask::Nobody),
            Reason::Conflict { wanted, guard } => {
                let detail = format!("this cluster's nodes have {guard:?}");
                (invalid(FieldError::invalid(field, wanted, detail)), Ask::Nobody)
            }
            Reason::PodSecurity { value, detail } => {
                (invalid(FieldError::invalid(field, value, detail.as_str())), Ask::Nobody)
            }
            Reason::Protected => {
                let detail = "managed by the operator of the host cluster";
                (invalid(FieldError::forbidden(field, detail)), Ask::Nobody)
            }
            reason @ Reason::TooManyPermissions { sum } => {
                let value = Some(sum.to_string());
                let error = FieldError { cause: CauseType::TooMany, field, value, detail: reason.to_string() };
                (invalid(error), Ask::Nobody)
            }
            reason @ Reason::TooLong(_) => (invalid(FieldError::invalid(field, name, reason.to_string())), Ask::Nobody),
            reason @ Reason::MixedNames => (invalid(FieldError::forbidden(field, reason.to_string())), Ask::Nobody),
            Reason::Identity(_) => (Status::bad_request(refusal.to_string()), Ask::Nobody),
            Reason::Malformed(_) => (Status::bad_request(refusal.to_string()), Ask::Anybody),
            // In Kubernetes' own words already, and without the field.
            Reason::NamespaceMismatch => (Status::bad_request(refusal.reason.to_string()), Ask::KubeApiserver),
            _ => (Status::bad_request(refusal.to_string()), Ask::KubeApiserver),
        };
        Unmapped::refusal(status, ask)
    }

    /// Whose it is, in a word of the proxy-server's log.
    pub(crate) fn fault(&self) -> &'static str {
        match self {
            Self::Status(status) if status.code < 500 => "client",
            Self::Unmapped(unmapped) if unmapped.status.code < 500 => "client",
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

    /// As the Status that it becomes.
    pub(crate) fn into_status(self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Unmapped(unmapped) => unmapped.status,
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

#[cfg(test)]
mod tests {
    use super::*;
    use rewrite::json::FieldPath;

    fn refused(reason: Reason) -> (Status, Ask) {
        let refusal = rewrite::request::Refusal { path: FieldPath::of("spec"), reason };
        let resource = GroupResource { group: "apps", resource: "deployments" };
        let kind = GroupKind { group: "apps", kind: "Deployment" };
        let Refusal::Unmapped(unmapped) = Refusal::body(resource, kind, "web", &refusal) else { panic!("of a body") };
        (unmapped.status, unmapped.ask)
    }

    #[test]
    fn another_value_is_quoted_once() {
        let conflict = Reason::Conflict { wanted: "shanghai".to_owned(), guard: "beijing".to_owned() };
        let (status, ask) = refused(conflict);
        let expected =
            r#"Deployment.apps "web" is invalid: spec: Invalid value: "shanghai": this cluster's nodes have "beijing""#;
        assert_eq!((status.code, &*status.message, ask), (422, expected, Ask::Nobody));
        let cause = &status.details.unwrap().causes[0];
        assert_eq!(cause.message, r#"Invalid value: "shanghai": this cluster's nodes have "beijing""#);
    }

    #[test]
    fn only_what_nobody_can_read_is_shown_to_everybody() {
        let malformed = rewrite::json::Malformed { offset: 0, defect: rewrite::json::Defect::UnexpectedEnd };
        assert_eq!(refused(Reason::Malformed(malformed)).1, Ask::Anybody);
        for reason in [Reason::Duplicate, Reason::Wrapped, Reason::WrongType { expected: "a string" }] {
            assert_eq!(refused(reason).1, Ask::KubeApiserver);
        }
        let (status, ask) = refused(Reason::NamespaceMismatch);
        assert_eq!(ask, Ask::KubeApiserver);
        // `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`.
        let expected = "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!((status.code, &*status.message), (400, expected));
    }
}
