//! The facts for the audit log of the proxy-server, if it requests them ([`protocol::audit`]).
//!
//! The agent keeps no log of its own. It knows who a token belongs to, the object in the body of a request, and the `Status`
//! in the body of a response, all in the names of the virtual cluster.

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use kube_wire::{ResourceRequest, Status, Verb};
use protocol::audit::{self, ObjectFacts, UserInfo};
use rewrite::Mapping;
use rewrite::protobuf::ObjectMetadata;
use serde::Deserialize;

use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::translate::ShownBody;
use caller::Caller;

/// A larger body is not read for the log, in bytes.
const MAX_OBJECT: usize = 1 << 20;

/// A larger body is no `Status`, in bytes.
const MAX_STATUS: usize = 32 * 1024;

/// The media type of a body in protobuf begins with this.
const PROTOBUF: &[u8] = b"application/vnd.kubernetes.protobuf";

/// The facts about one request.
#[derive(Debug, Default)]
pub(crate) struct AuditFacts {
    user: Option<UserInfo>,
    impersonated: Option<UserInfo>,
    object: Option<ObjectFacts>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    metadata: ObjectFacts,
}

// === impl AuditFacts ===

impl AuditFacts {
    /// `None` if the proxy-server does not request them.
    pub(crate) fn requested(headers: &HeaderMap) -> Option<Box<Self>> {
        headers.contains_key(audit::AUDIT).then(Box::default)
    }

    /// The authenticated user.
    pub(crate) fn authenticated(&mut self, mapping: &Mapping, caller: &Caller) {
        self.user = Some(caller.user_info(mapping));
    }

    /// The user that this user may impersonate, and does.
    pub(crate) fn impersonating(&mut self, mapping: &Mapping, caller: &Caller) {
        self.impersonated = Some(caller.user_info(mapping));
    }

    /// The object that a client creates or replaces (`LogRequestObject` in apiserver's `pkg/audit/request.go`).
    pub(crate) fn received(&mut self, call: &Call<'_>, body: &Body) {
        let is_object = matches!(*call.api.info.method(), Method::POST | Method::PUT);
        let bytes = body.bytes();
        if is_object && call.api.info.resource().is_some() && !bytes.is_empty() && bytes.len() <= MAX_OBJECT {
            self.object = object(&call.api.headers, &bytes);
        }
    }

    /// The response, if it is a `Status`: a failure, or the result of a deletion.
    pub(crate) fn responded(&mut self, request: Option<&ResourceRequest<'_>>, response: &Response<ShownBody>) {
        let is_deletion = matches!(request.map(ResourceRequest::verb), Some(Verb::Delete | Verb::DeleteCollection));
        if !is_deletion && response.status().as_u16() < 400 {
            return;
        }
        let Some(body) = response.body().in_memory(MAX_STATUS) else { return };
        let status =
            if is_protobuf(response.headers()) { Status::from_protobuf(&body) } else { Status::from_json(&body) };
        if let Ok(status) = status {
            self.refused(&status);
        }
    }

    /// The agent refuses the request.
    pub(crate) fn refused(&mut self, status: &Status) {
        self.status = String::from_utf8(status.to_json()).ok().map(|json| json.trim_end().to_owned());
    }

    /// Adds the headers.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(user) = &self.user {
            audit::write(headers, audit::USER, user);
        }
        if let Some(impersonated) = &self.impersonated {
            audit::write(headers, audit::IMPERSONATED, impersonated);
        }
        if let Some(object) = &self.object {
            audit::write(headers, audit::OBJECT, object);
        }
        if let Some(status) = &self.status {
            audit::write_json(headers, audit::STATUS, status);
        }
    }
}

fn object(headers: &HeaderMap, body: &Bytes) -> Option<ObjectFacts> {
    if is_protobuf(headers) {
        let ObjectMetadata { name, uid, resource_version, .. } = ObjectMetadata::of(body).ok()?;
        return Some(ObjectFacts { namespace: String::new(), name, uid, resource_version });
    }
    let named: Named = serde_json::from_slice(body).ok()?;
    Some(named.metadata)
}

fn is_protobuf(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(PROTOBUF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_read_from_json() {
        let headers = HeaderMap::new();
        let read = |json: &str| object(&headers, &Bytes::copy_from_slice(json.as_bytes()));
        let json = r#"{"data":{"metadata":"x"},"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{}}}"#;
        let (name, uid, resource_version) = ("a".into(), "u".into(), "7".into());
        assert_eq!(read(json), Some(ObjectFacts { namespace: "n".into(), name, uid, resource_version }));
        assert_eq!(read(r#"{"metadata":{"generateName":"a-"}}"#), Some(ObjectFacts::default()));
        assert_eq!([read("{}"), read("a: b"), read(r#"{"metadata":{"name":1}}"#)], [None, None, None]);
    }
}
