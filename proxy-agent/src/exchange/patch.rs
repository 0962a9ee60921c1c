//! Patches.
//!
//! | form | what the agent sends |
//! |---|---|
//! | merge, strategic | the mapped patch; if it removes the guard: the result of a dry run, with the guard, as a PUT |
//! | JSON patch | the unchanged patch; if it touches anything that is mapped, copies or is large: the patched virtual object, as a PUT |
//! | apply | the mapped apply, with the guard as [`apply`] describes |
//!
//! A PUT contains the resourceVersion that the agent has read. The agent repeats it after a conflict, as an API server
//! does with patches (`handlers/patch.go`).

mod apply;
mod directives;
mod last_applied;
mod resolve;

use bytes::Bytes;
use http::{Method, Request};
use kube_wire::media::BodyType;
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use rewrite::json::{Cursor, Edits, Fate, Malformed};
use rewrite::json_patch::JsonPatch;
use rewrite::yaml::{Duplicate, YamlError};

use super::ApiRequest;
use super::body::{content_type, same_name};
use super::node_ports::Form;
use super::object::map_json;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
pub(super) use apply::named;
use directives::Directives;
use host_client::{RequestBody, full};
pub(super) use resolve::{MAX_LIVE, too_many_parts, tree};

/// Kinds that contain a pod specification, and so the guard.
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

/// Kinds whose labels say which virtual cluster an object belongs to, and that the host patches strategically. It does
/// not patch custom objects strategically (`jsonPatcher` and `smpPatcher` in apiserver's `handlers/patch.go`).
const LABELLED: [(&str, &str); 2] = [("", "namespaces"), ("rbac.authorization.k8s.io", "clusterroles")];

/// A JSON patch of at most this length, in bytes, does no harm with the name of a field manager.
const SHORT: usize = 256;

/// The refusal of a directive for an object of these kinds.
const UNDIRECTED: &str = "patches of Namespaces and ClusterRoles support neither $patch nor $retainKeys here; send a \
                          merge patch that sets removed fields to null, or send the whole object";

/// A patch for the host.
pub(super) struct Patched {
    pub(super) request: Request<RequestBody>,
    /// Whether the agent repeats it after a conflict.
    pub(super) again: bool,
}

impl ApiRequest<'_> {
    /// Maps a patch of the object at `path`, which is in host names.
    pub(super) async fn patch(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
        path: &str,
        body: &Bytes,
    ) -> Result<Patched, Refusal> {
        match self.patch_type()? {
            BodyType::JsonPatch => {
                let patch = JsonPatch::parse(body).map_err(|_| {
                    let status = Status::bad_request("the body is not a JSON patch");
                    Unmapped::refusal(status, DryRunScope::KubeApiserver)
                })?;
                let program = self.program(request);
                // The host could apply many operations, or copies of large values, before the agent has checked the
                // result.
                let is_small = !patch.copies() && !self.result_needs_samples(body, &patch);
                // A longer patch could add the name of a manager that is too long.
                let names_managers = body.len() > SHORT && patch.pointers().any(resolve::is_of_managed);
                if is_small && !names_managers && !patch.pointers().any(|pointer| program.touches(pointer)) {
                    return self.sent(path, full(body.clone()));
                }
                self.put(resolve::by_json_patch(self, request, namespace, path, &patch).await?, path)
            }
            BodyType::ApplyYaml => apply::apply(self, request, namespace, path, body).await,
            kind @ (BodyType::MergePatch | BodyType::StrategicMergePatch) => {
                let found = |body: &Bytes| match kind {
                    BodyType::StrategicMergePatch => Directives::of(body),
                    _ => Directives::default(),
                };
                if LABELLED.contains(&(request.group(), request.resource())) && found(body).of_maps {
                    // It could remove what the client does not see: the labels that make the object the cluster's, or
                    // the annotation with the `aggregationRule`.
                    return Err(Status::bad_request(UNDIRECTED).into());
                }
                let directs = |body: &Bytes| is_guarded(request) && found(body).any();
                let body = if directs(body) {
                    &resolve::without_moot_directive(self, request, path, body).await?
                } else {
                    body
                };
                let body = &self.with_node_ports(Form::Partial, body);
                let name = request.path_name().unwrap_or_default();
                let mapper = self.mapper(namespace).partial();
                let (mapped, report) = map_json(request, name, &self.program(request), &mapper, body)?;
                self.own_nodes(request, name, &report).await?;
                if (request.is_namespace() || self.is_renamed())
                    && let Some(own) = own_name(body)
                {
                    same_name(request, &own)?;
                }
                if report.removes_guard || directs(body) {
                    return self.put(resolve::by_dry_run(self, request, namespace, path, mapped).await?, path);
                }
                self.sent(path, full(mapped))
            }
            BodyType::Object(_) | BodyType::ApplyCbor => {
                let message = "this virtual cluster takes patches in JSON and YAML";
                let status = Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message);
                Err(Unmapped::refusal(status, DryRunScope::WithoutBody))
            }
        }
    }

    /// The type of the patch.
    pub(super) fn patch_type(&self) -> Result<BodyType, Refusal> {
        BodyType::of_patch(content_type(&self.headers))
            .map_err(|error| Unmapped::refusal(Status::unsupported_media_type(error), DryRunScope::WithoutBody))
    }

    /// Converts an object from YAML to JSON. Duplicate keys are an error or a warning, by `fieldValidation` (KEP-2885).
    pub(super) fn yaml(&self, body: &Bytes) -> Result<Bytes, Refusal> {
        let (json, duplicates) = converted(body)?;
        self.admit_sent(&json)?;
        let told = duplicates.iter().map(ToString::to_string);
        match &*WriteOptions::parse(self.info.query())?.field_validation {
            "Strict" if !duplicates.is_empty() => {
                let message = format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                    told.collect::<Vec<_>>().join("\n  ")
                );
                return Err(Unmapped::refusal(Status::bad_request(message), DryRunScope::KubeApiserver));
            }
            "Ignore" => {}
            _ => self.warn(told),
        }
        Ok(json)
    }

    fn sent(&self, path: &str, body: RequestBody) -> Result<Patched, Refusal> {
        let target = Self::target(path, self.info.query());
        Ok(Patched { request: self.upstream(Method::PATCH, &target, self.acts_as(), body)?, again: false })
    }

    pub(super) fn put(&self, body: Bytes, path: &str) -> Result<Patched, Refusal> {
        let mut query = self.info.query().borrowed();
        query.remove("force");
        let mut request = self.upstream(Method::PUT, &Self::target(path, &query), self.acts_as(), full(body))?;
        request.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Ok(Patched { request, again: true })
    }
}

/// Whether the objects contain a pod specification.
pub(super) fn is_guarded(request: &ResourceRequest<'_>) -> bool {
    GUARDED.contains(&(request.group(), request.resource()))
}

/// The JSON pointer of the pod specification in a guarded kind.
fn pod_spec(resource: &str) -> &'static str {
    match resource {
        "pods" => "/spec",
        "podtemplates" => "/template/spec",
        "cronjobs" => "/spec/jobTemplate/spec/template/spec",
        _ => "/spec/template/spec",
    }
}

/// The name of the object in a merge patch. The last of duplicate members counts, as in Go.
fn own_name(patch: &[u8]) -> Option<String> {
    let (mut name, mut cursor) = (None, Cursor::new(patch, 0, 0));
    cursor
        .object(&mut Edits::new(), |cursor, edits, key| {
            if !key.is("metadata") || cursor.peek()? != b'{' {
                cursor.skip()?;
                return Ok(Fate::Keep);
            }
            cursor.object(edits, |cursor, _, key| {
                if key.is("name") && cursor.peek()? == b'"' {
                    name = Some(cursor.string()?.decode().into_owned());
                } else {
                    cursor.skip()?;
                }
                Ok::<_, Malformed>(Fate::Keep)
            })?;
            Ok::<_, Malformed>(Fate::Keep)
        })
        .ok()?;
    name
}

/// Converts an object from YAML to JSON. JSON is YAML, and passes unchanged. The first of several documents counts, as
/// in the decoder of an API server.
pub(super) fn yaml_to_json(body: &Bytes) -> Result<Bytes, Refusal> {
    converted(body).map(|(json, _)| json)
}

/// The same, with the duplicate keys.
fn converted(body: &Bytes) -> Result<(Bytes, Vec<Duplicate>), Refusal> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
    {
        return Ok((body.clone(), Vec::new()));
    }
    let bad = |message: &dyn std::fmt::Display, scope| {
        Unmapped::refusal(Status::bad_request(format!("error decoding YAML: {message}")), scope)
    };
    let converted = rewrite::yaml::to_json(body).map_err(|error| match error {
        // The host might accept it.
        YamlError::Ambiguous(_) | YamlError::TooLarge => bad(&error, DryRunScope::Skip),
        error => bad(&error, DryRunScope::KubeApiserver),
    })?;
    if !converted.json.starts_with(b"{") {
        return Err(bad(&"the document is not an object", DryRunScope::KubeApiserver));
    }
    Ok((converted.json.into(), converted.duplicates))
}
