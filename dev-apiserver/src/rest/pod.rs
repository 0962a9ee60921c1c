//! Pods' own subresources that write: binding and eviction.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::status::{Cause, TryAgain};
use kube_wire::{ResourceRequest, Status};
use serde_json::{Value, json};

use super::read::find;
use crate::answer::{self, Body};
use crate::kinds::{self, Kind};
use crate::object;
use crate::serve::{Call, Sent};
use crate::store::State;
use crate::write::{Deletion, bind, delete, validate};

// === impl Call ===

impl Call<'_> {
    /// Puts a pod on a node, as a scheduler does.
    pub(super) async fn bind(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let binding = sent.object(self.header(header::CONTENT_TYPE)).await?;
        validate::types(&binding)?;
        let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
        self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            let name = object::name(&found);
            if node.is_empty() {
                return Err(Status::bad_request("target.name must name a node"));
            }
            if let Some(node) = found["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
                let why = format!("pod {name} is already assigned to node {node:?}");
                return Err(Status::conflict(kind.group_resource(), name, &why));
            }
            bind(state, Value::clone(&found), &node);
            Ok(())
        })?;
        Ok(success())
    }

    /// Removes a pod politely: not if a disruption budget forbids it.
    pub(super) async fn evict(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        // What it says beyond the name is how long to wait, and here nobody waits.
        sent.object(self.header(header::CONTENT_TYPE)).await?;
        self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            check_budgets(state, &found)?;
            delete(state, kind, &found, &Deletion::default())
        })?;
        Ok(success())
    }
}

/// 429, as kube-apiserver's eviction REST says it.
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
    answer::json(StatusCode::CREATED, &status)
}
