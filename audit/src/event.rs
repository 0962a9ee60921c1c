//! The JSON of an event (`Event` in `pkg/apis/audit/v1/types.go` of apiserver), with the fields in Kubernetes' order.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use kube_wire::status::{Details, Outcome};
use kube_wire::{ResourceRequest, Status};
use ops::date::Moment;
use protocol::audit::{ObjectFacts, UserInfo};
use serde::{Serialize, Serializer};

use crate::policy::Object;

/// One event, borrowed from the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    pub(crate) audit_id: &'a str,
    pub(crate) stage: &'static str,
    #[serde(rename = "requestURI")]
    pub(crate) request_uri: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) user: &'a UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) impersonated_user: Option<&'a UserInfo>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) source_ips: &'a [std::net::IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_ref: Option<&'a ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_status: Option<&'a ResponseStatus>,
    pub(crate) request_received_timestamp: MicroTime,
    pub(crate) stage_timestamp: MicroTime,
    annotations: Annotations<'a>,
}

/// `ObjectReference`: the object of a request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectReference {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) resource: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) api_group: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) api_version: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) resource_version: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) subresource: String,
}

/// The fields of `metav1.Status` that an event has. Those of a success are mostly unknown.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ResponseStatus {
    metadata: Nothing,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    pub(crate) code: u16,
}

/// `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Nothing {}

/// The name of the virtual cluster: a webhook may get the events of several.
#[derive(Serialize)]
struct Annotations<'a> {
    #[serde(rename = "atoll.dev/cluster")]
    cluster: &'a str,
    /// The fields that are shorter than they would be with kube-apiserver, separated by commas.
    #[serde(rename = "atoll.dev/truncated", skip_serializing_if = "String::is_empty")]
    truncated: String,
}

/// `metav1.MicroTime`: `2026-05-01T12:00:00.123456Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MicroTime(pub(crate) SystemTime);

// === impl Event ===

impl<'a> Event<'a> {
    /// An event of a request at level `Metadata`, with nothing but the request's ID and time.
    pub(crate) fn new(cluster: &'a str, audit_id: &'a str, user: &'a UserInfo, received: SystemTime) -> Self {
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: "Metadata",
            audit_id,
            stage: "",
            request_uri: "",
            verb: "",
            user,
            impersonated_user: None,
            source_ips: &[],
            user_agent: "",
            object_ref: None,
            response_status: None,
            request_received_timestamp: MicroTime(received),
            stage_timestamp: MicroTime(received),
            annotations: Annotations { cluster, truncated: String::new() },
        }
    }

    /// Names a field that is not complete.
    pub(crate) fn mark_truncated(&mut self, field: &str) {
        let truncated = &mut self.annotations.truncated;
        if !truncated.is_empty() {
            truncated.push(',');
        }
        truncated.push_str(field);
    }

    /// One line of JSON, with its end.
    pub(crate) fn line(&self) -> Bytes {
        let mut line = Vec::with_capacity(1024);
        serde_json::to_writer(&mut line, self).expect("texts and numbers are JSON, and a vector takes all of it");
        line.push(b'\n');
        line.into()
    }
}

// === impl ObjectReference ===

impl From<&ResourceRequest<'_>> for ObjectReference {
    fn from(request: &ResourceRequest<'_>) -> Self {
        Self {
            resource: request.resource().to_owned(),
            namespace: request.namespace().unwrap_or_default().to_owned(),
            name: request.name().unwrap_or_default().to_owned(),
            api_group: request.group().to_owned(),
            api_version: request.version().to_owned(),
            subresource: request.subresource().unwrap_or_default().to_owned(),
            ..Self::default()
        }
    }
}

impl ObjectReference {
    /// For the policy.
    pub(crate) fn attributes(&self) -> Object<'_> {
        Object {
            group: &self.api_group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
        }
    }

    /// Adds what the path does not say (`LogRequestObject` in `pkg/audit/request.go`).
    pub(crate) fn complete(&mut self, facts: ObjectFacts) {
        let ObjectFacts { namespace, name, uid, resource_version } = facts;
        let fields = [
            (&mut self.namespace, namespace),
            (&mut self.name, name),
            (&mut self.uid, uid),
            (&mut self.resource_version, resource_version),
        ];
        for (field, fact) in fields {
            if field.is_empty() {
                *field = fact;
            }
        }
    }
}

// === impl ResponseStatus ===

impl ResponseStatus {
    /// What kube-apiserver records if there was no response (`fakedSuccessStatus` in `pkg/endpoints/filters/audit.go`).
    pub(crate) fn closed_early() -> Self {
        Self { status: "Success", message: "Connection closed early".to_owned(), code: 200, ..Self::default() }
    }
}

impl From<Status> for ResponseStatus {
    fn from(status: Status) -> Self {
        let Status { outcome, message, reason, details, code, .. } = status;
        let outcome = match outcome {
            Outcome::Success => "Success",
            Outcome::Failure => "Failure",
        };
        Self { metadata: Nothing {}, status: outcome, message, reason: reason.as_str().to_owned(), details, code }
    }
}

// === impl MicroTime ===

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.duration_since(SystemTime::UNIX_EPOCH).as_ref().map_or(0, Duration::subsec_micros);
        let second = Moment::from(self.0).to_string();
        write!(f, "{}.{micros:06}Z", second.trim_end_matches('Z'))
    }
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
