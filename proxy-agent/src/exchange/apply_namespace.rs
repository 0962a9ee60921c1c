//! Server-side apply of a Namespace that does not exist, which creates it.
//!
//! An apply cannot require that the object does not exist, and must never take over a namespace of another owner. So
//! the agent first creates the namespace, with only the labels and annotations of the virtual cluster; the host refuses
//! this if the name is taken. Then it sends the apply, with the client's field manager. It sends the apply as a dry run
//! before, so that a refusal leaves nothing behind.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::name::HIDDEN_PREFIX;
use rewrite::pod_security::is_enforced;
use rewrite::view::Filter;
use rewrite::{HostNamespace, VirtualNamespace};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::ApiRequest;
use super::object::Object;
use super::patch::named;
use super::plan::{After, As, Plan, program};
use crate::refusal::Refusal;
use crate::translate::{ResponseTransform, Upstream};
use caller::reviews::Attributes;
use host_client::{HostBody, full};
use virtual_cluster::namespaces::{self, Annotations};
use virtual_cluster::provisioner::Growth;

/// The apply that follows the creation of the namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FirstApply {
    name: String,
    /// Path and query, in host names.
    target: String,
    body: Bytes,
}

impl ApiRequest<'_> {
    /// An apply of a Namespace that the virtual cluster does not have. The caller is authorised to patch it.
    pub(super) async fn apply_namespace(
        &self,
        request: &ResourceRequest<'_>,
        name: &VirtualNamespace,
        body: &Bytes,
    ) -> Result<Plan, Refusal> {
        // As `createAuthorizerAttributes` in apiserver's `handlers/patch.go`.
        let create = Attributes { verb: "create", ..self.attributes(request) };
        self.outside(self.services.authz.demand(&self.mapping, &self.caller, &create)).await?;
        let options = WriteOptions::parse(self.info.query())?;
        let json = named(self, request, self.yaml(body)?)?;
        let own = Object::Json(json.clone()).name()?.name;
        if own != name.as_str() {
            // `checkName` in apiserver's `handlers/rest.go`.
            let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
            return Err(Status::bad_request(message).into());
        }
        self.has_room(request, Growth::Namespace)?;
        let program = program(request);
        let mapped = self.map(request, &program, self.mapper(None), &json).await?;
        // The engine has already accepted the same name.
        let host = self
            .mapping
            .host(name)
            .map_err(|taken| Status::conflict(request.group_resource(), name.as_str(), &taken.to_string()))?;

        let transform = ResponseTransform::Object { program, filter: Filter::Everything, only: None };
        let target = |dry: bool| {
            let mut query = self.info.query().borrowed();
            if dry {
                query.set("dryRun", "All");
            }
            Self::target(&format!("{}/{host}", namespaces::PATH), &query)
        };
        let mut tried = self.upstream(Method::PATCH, &target(true), As::Agent, full(mapped.clone()))?;
        self.readable(&mut tried)?;
        if options.dry_run {
            let mut plan = self.planned(request, tried, transform);
            plan.mapping = self.mapping.clone().asking_for(name.clone());
            plan.after = After::Tried;
            return Ok(plan);
        }
        let tried = self.send(tried).await?;
        if !tried.status().is_success() {
            return Err(self.refused(request, tried).await);
        }
        if tried.status() != StatusCode::CREATED {
            return Err(taken(request, name.as_str()).into());
        }

        let body = full(bare(&host, &mapped, &self.cluster.annotations)?.to_string());
        let mut first = self.upstream(Method::POST, namespaces::PATH, As::Agent, body)?;
        for key in [header::ACCEPT, header::CONTENT_TYPE] {
            first.headers_mut().insert(key, HeaderValue::from_static("application/json"));
        }
        let mut plan = self.planned(request, first, transform);
        plan.mapping = self.mapping.clone().asking_for(name.clone());
        plan.after = After::FirstApply(FirstApply { name: name.to_string(), target: target(false), body: mapped });
        Ok(plan)
    }

    /// Applies what the client has sent to the namespace that was just created.
    pub(super) async fn first_apply(
        &self,
        apply: &FirstApply,
        response: Response<HostBody>,
    ) -> Result<Response<Upstream>, Refusal> {
        let Some(request) = self.info.resource() else { return Ok(response.map(Upstream::Stream)) };
        if response.status() == StatusCode::CONFLICT {
            return Err(taken(request, &apply.name).into());
        }
        if response.status() != StatusCode::CREATED {
            return Ok(response.map(Upstream::Stream));
        }
        let created = self.collected(response).await?;
        let created: Value =
            serde_json::from_slice(&created).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let mut patch = self.upstream(Method::PATCH, &apply.target, As::Agent, full(apply.body.clone()))?;
        self.readable(&mut patch)?;
        let mut applied = self.send(patch).await?;
        if applied.status() != StatusCode::OK {
            self.take_back(&created).await;
            return Ok(applied.map(Upstream::Stream));
        }
        *applied.status_mut() = StatusCode::CREATED;
        self.post_create(applied).await
    }

    /// The response to a dry run of such an apply.
    pub(super) fn apply_tried(&self, response: Response<HostBody>) -> Result<Response<Upstream>, Refusal> {
        if let Some(request) = self.info.resource()
            && response.status() == StatusCode::OK
            && let Some(name) = request.path_name()
        {
            return Err(taken(request, name).into());
        }
        Ok(response.map(Upstream::Stream))
    }

    /// Deletes the namespace of a failed apply. No user has had a right in it yet.
    async fn take_back(&self, created: &Value) {
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        let options = json!({"preconditions": {"uid": created["metadata"]["uid"]}});
        let path = format!("{}/{name}", namespaces::PATH);
        let Ok(mut delete) = self.upstream(Method::DELETE, &path, As::Agent, full(options.to_string())) else { return };
        delete.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.send(delete).await {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => {
                warn!(namespace = name, status = %answer.status(), "cannot delete the namespace of a failed apply");
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, namespace = name, "cannot delete the namespace of a failed apply");
            }
        }
    }
}

fn taken(request: &ResourceRequest<'_>, name: &str) -> Status {
    Status::conflict(request.group_resource(), name, "its name on the host cluster is taken by another namespace")
}

/// The Namespace with only Atoll's labels and annotations. The apply contains the labels too, with the same values. It
/// does not contain the annotations: its manager would own them, and its next apply would remove them.
fn bare(host: &HostNamespace, mapped: &Bytes, annotations: &Annotations) -> Result<Value, Refusal> {
    let mapped: Value = serde_json::from_slice(mapped).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let mut labels = mapped["metadata"]["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        let is_enforcing = labels.contains_key(rewrite::pod_security::MARK);
        labels.retain(|key, _| key.starts_with(HIDDEN_PREFIX) || is_enforcing && is_enforced(key));
    }
    let annotations: Map<_, _> = annotations.entries().map(|(key, value)| (key.to_owned(), value.into())).collect();
    Ok(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": host.as_str(), "labels": labels, "annotations": annotations},
    }))
}
