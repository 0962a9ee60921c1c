//! The subresource `scale`.

use std::sync::Arc;

use http::{Response, StatusCode};
use kube_wire::go_quote::GoQuoted;
use kube_wire::gvr::GroupResource;
use kube_wire::media::BodyType;
use kube_wire::status::{Details, Reason};
use kube_wire::{Status, Verb};
use serde_json::{Value, json};

use super::decode;
use super::patch::patch_type;
use super::read::find;
use super::request::ApiRequest;
use crate::body::{RequestBody, parse_json};
use crate::object;
use crate::patch::patched;
use crate::response::{self, Body};
use crate::write::{self, Part, Writer, check_name};

pub(super) async fn serve(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    if request.resource.verb() == Verb::Get {
        let found = request.api.store.read(|state| find(state, request).cloned())?;
        return Ok(response::json(StatusCode::OK, &scale(&found)));
    }
    let kind = request.kind;
    let patch = if request.resource.verb() == Verb::Patch { Some(patch_type(request)?) } else { None };
    if patch == Some(BodyType::ApplyYaml) {
        return Err(not_supported(kind.group_resource(), "apply to scale"));
    }
    let sent = match patch {
        Some(_) => parse_json(&body.bytes().await?)?,
        None => decode::object(request, body).await?,
    };
    let dry_run = request.write_options()?.dry_run;
    let manager = request.manager()?;
    let written = request.api.store.write(|state| {
        let found = Arc::clone(find(state, request)?);
        let requested = match patch {
            Some(patch_type) => patched(patch_type, &scale(&found), &sent)?,
            None => sent,
        };
        if !object::name(&requested).is_empty() {
            check_name(&requested, request.name())?;
        }
        let replicas = requested["spec"]["replicas"].as_u64().unwrap_or(0);
        let mut object = Value::clone(&found);
        object::map(&mut object, "spec").insert("replicas".to_owned(), replicas.into());
        if let Some(version) = requested["metadata"]["resourceVersion"].as_str() {
            object["metadata"]["resourceVersion"] = version.into();
        }
        write::update(
            state,
            kind,
            Writer { user: None, ..request.writer(&manager) },
            &found,
            object,
            Part::Main,
            dry_run,
        )
    })?;
    Ok(response::json(StatusCode::OK, &scale(&written)))
}

fn scale(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let selector = object::label_selector(&object["spec"]["selector"]);
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": object["spec"]["replicas"].as_u64().unwrap_or(0)},
        "status": {
            "replicas": object["status"]["replicas"].as_u64().unwrap_or(0),
            "selector": selector.map(|selector| selector.to_string()).unwrap_or_default(),
        },
    })
}

/// `NewMethodNotSupported` in apimachinery's errors.go.
fn not_supported(resource: GroupResource<'_>, action: &str) -> Status {
    let message = format!("{action} is not supported on resources of kind {}", GoQuoted(&resource.to_string()));
    let details = Some(Details::of(resource, ""));
    Status { details, ..Status::failure(405, Reason::MethodNotAllowed, message) }
}
