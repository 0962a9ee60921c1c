//! `scale`: how many replicas, whatever the kind.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::go_quote::GoQuoted;
use kube_wire::gvr::GroupResource;
use kube_wire::media::BodyType;
use kube_wire::status::{Details, Reason};
use kube_wire::{ResourceRequest, Status, Verb};
use serde_json::{Value, json};

use super::read::find;
use crate::answer::{self, Body};
use crate::kinds::Kind;
use crate::object;
use crate::patch::patched;
use crate::serve::{Call, Sent, parse_json};
use crate::write::{self, Part, Writer};

// === impl Call ===

impl Call<'_> {
    pub(super) async fn scale(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        if request.verb() == Verb::Get {
            let found = self.api.store.read(|state| find(state, kind, request).cloned())?;
            return Ok(answer::json(StatusCode::OK, &scale(&found)));
        }
        let patch = if request.verb() == Verb::Patch { Some(self.patch_type()?) } else { None };
        if patch == Some(BodyType::ApplyYaml) {
            return Err(not_supported(kind.group_resource(), "apply to scale"));
        }
        let body = match patch {
            Some(_) => parse_json(&sent.bytes().await?)?,
            None => sent.object(self.header(header::CONTENT_TYPE)).await?,
        };
        let dry_run = self.write_options()?.dry_run;
        let manager = self.manager()?;
        let written = self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            let asked = match patch {
                Some(patch_type) => patched(patch_type, &scale(&found), &body)?,
                None => body,
            };
            let replicas = asked["spec"]["replicas"].as_u64().unwrap_or(0);
            let mut object = Value::clone(&found);
            object::map(&mut object, "spec").insert("replicas".to_owned(), replicas.into());
            if let Some(version) = asked["metadata"]["resourceVersion"].as_str() {
                object["metadata"]["resourceVersion"] = version.into();
            }
            write::update(
                state,
                kind,
                Writer { user: None, ..self.writer(&manager) },
                &found,
                object,
                Part::Main,
                dry_run,
            )
        })?;
        Ok(answer::json(StatusCode::OK, &scale(&written)))
    }
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
