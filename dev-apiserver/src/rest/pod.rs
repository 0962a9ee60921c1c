//! The subresources `binding` and `eviction` of pods.

use std::sync::Arc;

use http::{Response, StatusCode};
use kube_wire::Status;
use kube_wire::status::{Cause, TryAgain};
use serde_json::{Value, json};

use super::decode;
use super::read::find;
use super::request::ApiRequest;
use crate::body::RequestBody;
use crate::kinds;
use crate::object;
use crate::response::{self, Body};
use crate::store::State;
use crate::write::{self, Deletion};

/// Assigns a pod to a node.
pub(super) async fn bind(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let binding = decode::object(request, body).await?;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    request.api.store.write(|state| {
        let found = Arc::clone(find(state, request)?);
        let name = object::name(&found);
        if node.is_empty() {
            return Err(Status::bad_request("target.name is required"));
        }
        if let Some(node) = found["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            let why = format!("pod {name} is already assigned to node {node:?}");
            return Err(Status::conflict(request.kind.group_resource(), name, &why));
        }
        write::bind(state, Value::clone(&found), &node);
        Ok(())
    })?;
    Ok(success())
}

/// Deletes a pod unless a disruption budget prevents it.
pub(super) async fn evict(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    // The options of an eviction only set a grace period. Simulated pods stop at once.
    decode::object(request, body).await?;
    request.api.store.write(|state| {
        let found = Arc::clone(find(state, request)?);
        check_budgets(state, &found)?;
        write::delete(state, request.kind, &found, &Deletion::default())
    })?;
    Ok(success())
}

/// 429 with the texts of `pkg/registry/core/pod/storage/eviction.go`.
fn check_budgets(state: &State, pod: &Value) -> Result<(), Status> {
    let budgets = state.list(kinds::of("policy", "poddisruptionbudgets"), Some(object::namespace(pod)));
    for budget in budgets {
        let covers = object::label_selector(&budget["spec"]["selector"])
            .is_some_and(|selector| object::is_selected(&selector, pod));
        if !covers || budget["status"]["disruptionsAllowed"].as_u64().unwrap_or(0) > 0 {
            continue;
        }
        let count = |field: &str| budget["status"][field].as_u64().unwrap_or(0);
        let message = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            object::name(budget),
            count("desiredHealthy"),
            count("currentHealthy")
        );
        let mut status =
            TryAgain::TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.").after(0);
        let cause = Cause { cause_type: "DisruptionBudget".into(), message, field: String::new() };
        status.details.get_or_insert_default().causes.push(cause);
        return Err(status);
    }
    Ok(())
}

fn success() -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    response::json(StatusCode::CREATED, &status)
}
