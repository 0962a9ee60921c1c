//! Pods' own subresources that write: binding and eviction.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::{ResourceRequest, Status};
use serde_json::{Value, json};

use super::read::find;
use super::{Deletion, delete, validate};
use crate::answer::{self, Body};
use crate::kinds::Kind;
use crate::object;
use crate::serve::{Call, Sent};

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
            let mut bound = Value::clone(&found);
            bound["spec"]["nodeName"] = node.into();
            state.put(kind, bound);
            Ok(())
        })?;
        Ok(success())
    }

    /// Removes a pod politely. Disruption budgets are not looked at.
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
            delete(state, kind, &found, &Deletion::default())
        })?;
        Ok(success())
    }
}

fn success() -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    answer::json(StatusCode::CREATED, &status)
}
