//! Deleting: at once, or when the last finalizer has gone, or when a node says so.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::query::DeleteOptions;
use kube_wire::{ResourceRequest, Status};
use serde_json::{Value, json};

use super::read::find;
use super::scope;
use super::selection::Selection;
use super::shape::ListMeta;
use crate::answer::{self, Body};
use crate::kinds::Kind;
use crate::object;
use crate::protobuf;
use crate::serve::{Call, Sent, parse_json};
use crate::write::{Deleted, Deletion, delete};

// === impl Call ===

impl Call<'_> {
    pub(super) async fn delete(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let deletion = self.deletion(sent).await?;
        let deleted = self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            delete(state, kind, &found, &deletion)
        })?;
        match deleted {
            Deleted::Going(object) => self.show(StatusCode::OK, kind, &object),
            Deleted::Gone(object) if kind.is_pod() => self.show(StatusCode::OK, kind, &object),
            Deleted::Gone(object) => Ok(answer::json(StatusCode::OK, &success(kind, &object))),
        }
    }

    pub(super) async fn delete_collection(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let deletion = self.deletion(sent).await?;
        let selection = Selection::parse(kind, &self.list_options()?)?;
        let (revision, items) = self.api.store.write(|state| {
            let namespace = scope(kind, request);
            let found: Vec<_> =
                state.list(kind, namespace).filter(|object| selection.selects(object)).cloned().collect();
            for object in &found {
                delete(state, kind, object, &deletion)?;
            }
            Ok::<_, Status>((state.revision(), found))
        })?;
        self.show_list(kind, &ListMeta { resource_version: revision, ..ListMeta::default() }, &items)
    }

    /// The body, if there is one, says it all; else the query does.
    async fn deletion(&self, sent: Sent) -> Result<Deletion, Status> {
        let query = DeleteOptions::parse(self.info.query()).map_err(|error| Status::bad_request(error.to_string()))?;
        let content_type = self.header(header::CONTENT_TYPE).unwrap_or_default();
        let bytes = sent.bytes().await?;
        if bytes.is_empty() {
            let options = json!({
                "dryRun": query.dry_run.then_some(["All"]),
                "propagationPolicy": query.propagation_policy,
                "gracePeriodSeconds": query.grace_period_seconds,
                "orphanDependents": query.orphan_dependents,
            });
            return Deletion::parse(&options);
        }
        let is_protobuf = content_type.contains("protobuf");
        let options = if is_protobuf { protobuf::object(&bytes)? } else { parse_json(&bytes)? };
        Deletion::parse(&options)
    }
}

/// The `Status` that says it is gone.
fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": object::name(object), "kind": kind.resource, "uid": object::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
