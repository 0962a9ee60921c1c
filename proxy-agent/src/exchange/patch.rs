//! Patches.
//!
//! | form | how it goes upstream |
//! |---|---|
//! | merge, strategic | mapped like an object; a guard that it would take away is put back by a dry run and a PUT |
//! | JSON patch | applied here to the virtual object, since its paths are the client's; then a PUT |
//! | apply | mapped, with what [`apply`] says of the guard |
//!
//! A PUT carries the resourceVersion that was read, and a conflict is tried again, as an API server does with patches
//! (`handlers/patch.go`).

mod apply;
mod resolve;

use bytes::Bytes;
use http::{Method, Request};
use kube_wire::media::BodyType;
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use serde_json::Value;

use super::Asked;
use super::body::content_type;
use super::object::map_json;
use super::plan::{As, program};
use crate::host::{RequestBody, full};
use crate::refusal::Refusal;

/// Kinds that hold a pod specification, and so the guard.
const GUARDED: [(&str, &str); 9] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

/// Directives of strategic merge patches that can remove what they do not name.
const DIRECTIVES: [&[u8]; 3] = [b"\"$patch\"", b"\"$retainKeys\"", b"\"$deleteFromPrimitiveList"];

/// A patch as it goes upstream.
pub(super) struct Patched {
    pub(super) request: Request<RequestBody>,
    /// Whether a conflict is ours to try again.
    pub(super) again: bool,
}

impl Asked<'_> {
    /// A patch of the object at `path`, which is in host names.
    pub(super) async fn patch(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
        path: &str,
        body: &Bytes,
    ) -> Result<Patched, Refusal> {
        let kind = BodyType::of_patch(content_type(&self.headers));
        match kind.map_err(|error| Refusal::from(Status::unsupported_media_type(error)))? {
            BodyType::JsonPatch => self.put(resolve::by_json_patch(self, request, namespace, path, body).await?, path),
            BodyType::ApplyYaml => apply::apply(self, request, namespace, path, body).await,
            BodyType::MergePatch | BodyType::StrategicMergePatch => {
                let mapper = self.mapper(namespace).partial();
                let (mapped, report) = map_json(request, &program(request), &mapper, body)?;
                self.own_nodes(request, &report).await?;
                let guarded = GUARDED.contains(&(request.group(), request.resource()));
                let directs = DIRECTIVES.iter().any(|word| memchr::memmem::find(body, word).is_some());
                if report.removes_guard || (guarded && directs) {
                    return self.put(resolve::by_dry_run(self, request, namespace, path, mapped).await?, path);
                }
                self.sent(path, full(mapped))
            }
            BodyType::Object(_) | BodyType::ApplyCbor => {
                let message = "this virtual cluster takes patches in JSON and YAML";
                Err(Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message).into())
            }
        }
    }

    fn sent(&self, path: &str, body: RequestBody) -> Result<Patched, Refusal> {
        let target = Self::target(path, self.info.query());
        Ok(Patched { request: self.upstream(Method::PATCH, &target, As::Caller, body)?, again: false })
    }

    fn put(&self, body: Bytes, path: &str) -> Result<Patched, Refusal> {
        let mut query = self.info.query().borrowed();
        query.remove("force");
        let mut request = self.upstream(Method::PUT, &Self::target(path, &query), As::Caller, full(body))?;
        request.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Ok(Patched { request, again: true })
    }
}

/// YAML as JSON; JSON is YAML, and passes as it is.
pub(super) fn yaml_to_json(body: &Bytes) -> Result<Bytes, Refusal> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return Ok(body.clone());
    }
    let bad = |error: String| Refusal::from(Status::bad_request(format!("error decoding YAML: {error}")));
    let text = std::str::from_utf8(body).map_err(|error| bad(error.to_string()))?;
    let value: Value = serde_saphyr::from_str(text).map_err(|error| bad(error.to_string()))?;
    serde_json::to_vec(&value).map(Bytes::from).map_err(|error| bad(error.to_string()))
}
