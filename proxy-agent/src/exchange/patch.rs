//! Patches.
//!
//! | form | how it goes upstream |
//! |---|---|
//! | merge, strategic | mapped like an object; a guard that it would take away is put back by a dry run and a PUT |
//! | JSON patch | as it is if it has to do with nothing that is mapped; else applied here to the virtual object, then a PUT |
//! | apply | mapped, with what [`apply`] says of the guard |
//!
//! A PUT carries the resourceVersion that was read, and a conflict is tried again, as an API server does with patches
//! (`handlers/patch.go`).

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
use rewrite::json::{Cursor, Edits, Fate, MAX_WEIGHT, Malformed, weight};
use rewrite::json_patch::JsonPatch;
use rewrite::yaml::{Duplicate, YamlError};

use super::Asked;
use super::body::{content_type, same_name};
use super::node_ports::Form;
use super::object::map_json;
use crate::host::{RequestBody, full};
use crate::refusal::{Ask, Refusal, Unmapped};
pub(super) use apply::{made_at, named};
use directives::Directives;
pub(super) use resolve::tree;

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

/// Kinds whose labels say which virtual cluster an object belongs to, and that the host patches strategically. Custom
/// objects it does not (`jsonPatcher` and `smpPatcher` in apiserver's `handlers/patch.go`).
const LABELLED: [(&str, &str); 2] = [("", "namespaces"), ("rbac.authorization.k8s.io", "clusterroles")];

/// To who sends a directive for an object of these kinds.
const UNDIRECTED: &str = "patches of Namespaces and ClusterRoles support neither $patch nor $retainKeys here; send a \
                          merge patch that sets removed fields to null, or send the whole object";

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
        match self.patch_type()? {
            BodyType::JsonPatch => {
                let patch = JsonPatch::parse(body).map_err(|_| {
                    let status = Status::bad_request("the body is not a JSON patch");
                    Unmapped::refusal(status, Ask::KubeApiserver)
                })?;
                let program = self.program(request);
                if !patch.pointers().any(|pointer| program.touches(pointer)) {
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
                    // It could take away what the client does not see: the labels that make the object one of the
                    // cluster's, or the annotation that holds an `aggregationRule`.
                    return Err(Status::bad_request(UNDIRECTED).into());
                }
                let directs =
                    |body: &Bytes| GUARDED.contains(&(request.group(), request.resource())) && found(body).any();
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
                Err(Unmapped::refusal(status, Ask::WithoutBody))
            }
        }
    }

    /// How the body of a patch is to be understood.
    pub(super) fn patch_type(&self) -> Result<BodyType, Refusal> {
        BodyType::of_patch(content_type(&self.headers))
            .map_err(|error| Unmapped::refusal(Status::unsupported_media_type(error), Ask::WithoutBody))
    }

    /// An object in YAML as JSON. What is there twice is an error or a warning, as the client wants it (KEP-2885).
    pub(super) fn yaml(&self, body: &Bytes) -> Result<Bytes, Refusal> {
        let (json, duplicates) = converted(body)?;
        let told = duplicates.iter().map(ToString::to_string);
        match &*WriteOptions::parse(self.info.query())?.field_validation {
            "Strict" if !duplicates.is_empty() => {
                let message = format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                    told.collect::<Vec<_>>().join("\n  ")
                );
                return Err(Unmapped::refusal(Status::bad_request(message), Ask::KubeApiserver));
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

/// Where the specification of the pods stands in a guarded kind, as a JSON pointer.
fn pod_spec(resource: &str) -> &'static str {
    match resource {
        "pods" => "/spec",
        "podtemplates" => "/template/spec",
        "cronjobs" => "/spec/jobTemplate/spec/template/spec",
        _ => "/spec/template/spec",
    }
}

/// The name that a merge patch gives to the object. Of members that are there twice the last counts, as for Go.
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

/// An object in YAML as JSON. JSON is YAML, and passes as it is. Of several documents the first counts, as for the
/// decoder of an API server.
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
    let bad = |message: &dyn std::fmt::Display, ask| {
        Unmapped::refusal(Status::bad_request(format!("error decoding YAML: {message}")), ask)
    };
    let converted = rewrite::yaml::to_json(body).map_err(|error| match error {
        // The host may take it.
        YamlError::Ambiguous(_) | YamlError::TooLarge => bad(&error, Ask::Nobody),
        error => bad(&error, Ask::KubeApiserver),
    })?;
    if !converted.json.starts_with(b"{") {
        return Err(bad(&"the document is not an object", Ask::KubeApiserver));
    }
    if weight(&converted.json) > MAX_WEIGHT {
        return Err(bad(&YamlError::TooLarge, Ask::Nobody));
    }
    Ok((converted.json.into(), converted.duplicates))
}
