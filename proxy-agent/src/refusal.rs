//! Every refusal of an API request. This is the only module that converts one to a `metav1.Status`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use kube_wire::Status;
use kube_wire::gvr::{GroupKind, GroupResource};
use kube_wire::status::{CauseType, FieldError, TryAgain, http_response};
use protocol::Fault;
use rewrite::request::Reason;

use caller::authn::Unauthenticated;
use caller::authz::Refused;
use host_client::HostError;
use virtual_cluster::share::in_flight::Kind;

/// Why a request does not get a response of the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A complete Status.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// The body or its media type cannot be mapped. See `exchange::host::error`.
    #[error("{}", .0.status.message)]
    Unmapped(Box<Unmapped>),
    /// The host did not answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The cluster has used up a limit. The request had no effect, and may be repeated.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The agent cannot read the host's response. It does not forward the response, which could contain anything.
    #[error("the host's response cannot be mapped: {0}")]
    Unreadable(String),
}

/// The refusal of a request that is not mapped.
#[derive(Debug)]
pub(crate) struct Unmapped {
    /// The agent's own Status.
    pub(crate) status: Status,
    /// Which servers may return a better one.
    pub(crate) scope: DryRunScope,
}

/// Which servers may get such a request as a dry run, so that the client gets the error of that server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRunScope {
    /// Every server: the body does not match its media type, so no server can accept it.
    AnyServer,
    /// Only kube-apiserver, for its own resources: it stores nothing in a dry run.
    KubeApiserver,
    /// Every server, but without the body: the media type is wrong.
    WithoutBody,
    /// No server: the host would accept the request, but this virtual cluster does not.
    Skip,
}

/// A limit that one virtual cluster has used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exhausted {
    /// The memory for bodies.
    #[error("too many requests: other requests and responses use up the agent's memory for this cluster")]
    Memory,
    /// The memory for heads.
    #[error("too many requests: long URLs and headers of waiting requests use up the agent's memory for this cluster")]
    Heads,
    /// The [requests in flight](virtual_cluster::share::in_flight) of a kind.
    #[error("too many requests: this cluster has too many {} at a time", of_kind(*.0))]
    InFlight(Kind),
    /// The [seats](virtual_cluster::share::seats) at the host.
    #[error("too many requests: earlier lists and watches of this cluster are still in progress at the API server")]
    Seats,
    /// The [limits](virtual_cluster::share::large_objects) for large objects.
    #[error("too many requests: the agent or the API server is busy with other large objects")]
    LargeObjects,
    /// The [turns](virtual_cluster::share::write_turns) of writes.
    #[error("too many requests: earlier writes of this cluster wait for the API server")]
    Writes,
    /// The [rate](virtual_cluster::share::write_rate) of bodies that cost the host much. The cluster may try again
    /// after this time.
    #[error("this cluster has sent too many objects with many fields and elements, or with many errors")]
    Weight(Duration),
}

fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Short => "requests without a complete response",
        Kind::LongRunning => "watches and logs",
        Kind::Session => "sessions (exec, attach, port-forward, proxy, WebSocket)",
    }
}

// === impl Exhausted ===

impl Exhausted {
    /// The time after which the client may try again, in seconds.
    fn retry_after(self) -> u32 {
        match self {
            Self::Weight(wait) => u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1),
            Self::Memory | Self::Heads | Self::InFlight(_) | Self::Seats | Self::LargeObjects | Self::Writes => 1,
        }
    }
}

// === impl Unmapped ===

impl Unmapped {
    /// A refusal whose message a server may improve, as `scope` says.
    pub(crate) fn refusal(status: Status, scope: DryRunScope) -> Refusal {
        Refusal::Unmapped(Box::new(Self { status, scope }))
    }
}

// === impl Refusal ===

impl Refusal {
    /// A body that cannot be mapped. `name` is the name of its object.
    pub(crate) fn body(
        resource: GroupResource<'_>,
        kind: GroupKind<'_>,
        name: &str,
        refusal: &rewrite::request::Refusal,
    ) -> Self {
        let field = refusal.path.to_string();
        let invalid = |error: FieldError| Status::invalid(kind, name, &[error]);
        let (status, scope) = match &refusal.reason {
            Reason::Taken(taken) => {
                (Status::conflict(resource, taken.name.as_str(), &taken.to_string()), DryRunScope::Skip)
            }
            Reason::Conflict { wanted, guard } => {
                let detail = format!("this cluster's nodes have {guard:?}");
                (invalid(FieldError::invalid(field, wanted, detail)), DryRunScope::Skip)
            }
            Reason::PodSecurity { value, detail } => {
                (invalid(FieldError::invalid(field, value, detail.as_str())), DryRunScope::Skip)
            }
            Reason::Protected => {
                let detail = "managed by the operator of the host cluster";
                (invalid(FieldError::forbidden(field, detail)), DryRunScope::Skip)
            }
            reason @ Reason::TooManyPermissions { sum } => {
                let value = Some(sum.to_string());
                let error = FieldError { cause: CauseType::TooMany, field, value, detail: reason.to_string() };
                (invalid(error), DryRunScope::Skip)
            }
            reason @ Reason::TooLong(_) => {
                (invalid(FieldError::invalid(field, name, reason.to_string())), DryRunScope::Skip)
            }
            reason @ Reason::MixedNames => {
                (invalid(FieldError::forbidden(field, reason.to_string())), DryRunScope::Skip)
            }
            Reason::Identity(_) => (Status::bad_request(refusal.to_string()), DryRunScope::Skip),
            Reason::Malformed(_) => (Status::bad_request(refusal.to_string()), DryRunScope::AnyServer),
            // This is already Kubernetes' own error message. It does not name the field.
            Reason::NamespaceMismatch => (Status::bad_request(refusal.reason.to_string()), DryRunScope::KubeApiserver),
            _ => (Status::bad_request(refusal.to_string()), DryRunScope::KubeApiserver),
        };
        Unmapped::refusal(status, scope)
    }

    /// Whose fault it is, as a value for the proxy-server's access log.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Status(status) if status.code < 500 => Fault::Client,
            Self::Exhausted(_) => Fault::Client,
            Self::Unmapped(unmapped) if unmapped.status.code < 500 => Fault::Client,
            Self::Host(error) => match error.fault() {
                host_client::Fault::Client => Fault::Client,
                host_client::Fault::Atoll => Fault::Atoll,
                host_client::Fault::Host => Fault::Host,
            },
            _ => Fault::Atoll,
        }
    }

    /// The response in the media type that the client accepts, as kube-apiserver would send it.
    pub(crate) fn into_response(self, accept: Option<&HeaderValue>) -> (Response<()>, Bytes) {
        response(&self.into_status(), accept)
    }

    /// The message for the operator. Unlike that for the client, it quotes no response of the host, which can contain
    /// anything.
    pub(crate) fn operator_message(&self) -> Option<&'static str> {
        matches!(self, Self::Unreadable(_))
            .then_some("the host's response cannot be mapped; the log at level debug has the reason")
    }

    /// The Status that the client gets.
    pub(crate) fn into_status(self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Unmapped(unmapped) => unmapped.status,
            Self::Exhausted(limit) => TryAgain::TooManyRequests(&limit.to_string()).after(limit.retry_after()),
            Self::Host(error) if error.unsent() => {
                Status::service_unavailable("the API server of the host cluster cannot be reached").with_retry_after(1)
            }
            Self::Host(HostError::Silent(_)) => {
                Status::timeout("the API server of the host cluster did not respond in time", 0)
            }
            // It may have been executed: a Retry-After would make clients repeat a write.
            Self::Host(_) => Status::internal_error("the connection to the API server of the host cluster broke"),
            Self::Unreadable(why) => Status::internal_error(&why),
        }
    }
}

/// The response with this Status, in the media type that the client accepts.
pub(crate) fn response(status: &Status, accept: Option<&HeaderValue>) -> (Response<()>, Bytes) {
    let (mut head, body) = http_response(status, accept).into_parts();
    // `h2` does not add it.
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    (Response::from_parts(head, ()), Bytes::from(body))
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
            // This is the message of an API server. The log has the invalid credential and the reason.
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

    fn refused(reason: Reason) -> (Status, DryRunScope) {
        let refusal = rewrite::request::Refusal { path: FieldPath::of("spec"), reason };
        let resource = GroupResource { group: "apps", resource: "deployments" };
        let kind = GroupKind { group: "apps", kind: "Deployment" };
        let Refusal::Unmapped(unmapped) = Refusal::body(resource, kind, "web", &refusal) else { panic!("of a body") };
        (unmapped.status, unmapped.scope)
    }

    #[test]
    fn another_value_is_quoted_once() {
        let conflict = Reason::Conflict { wanted: "shanghai".to_owned(), guard: "beijing".to_owned() };
        let (status, scope) = refused(conflict);
        let expected =
            r#"Deployment.apps "web" is invalid: spec: Invalid value: "shanghai": this cluster's nodes have "beijing""#;
        assert_eq!((status.code, &*status.message, scope), (422, expected, DryRunScope::Skip));
        let cause = &status.details.unwrap().causes[0];
        assert_eq!(cause.message, r#"Invalid value: "shanghai": this cluster's nodes have "beijing""#);
    }

    #[test]
    fn only_malformed_bodies_are_sent_to_every_server() {
        let malformed = rewrite::json::Malformed { offset: 0, defect: rewrite::json::Defect::UnexpectedEnd };
        assert_eq!(refused(Reason::Malformed(malformed)).1, DryRunScope::AnyServer);
        for reason in [Reason::Duplicate, Reason::Wrapped, Reason::WrongType { expected: "a string" }] {
            assert_eq!(refused(reason).1, DryRunScope::KubeApiserver);
        }
        let (status, scope) = refused(Reason::NamespaceMismatch);
        assert_eq!(scope, DryRunScope::KubeApiserver);
        // `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`.
        let expected = "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!((status.code, &*status.message), (400, expected));
    }
}
