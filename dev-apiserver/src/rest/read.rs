//! Reading one object (GET).

use std::sync::Arc;

use http::{Response, StatusCode};
use kube_wire::Status;
use serde_json::Value;

use super::request::ApiRequest;
use super::shape::respond;
use crate::response::Body;
use crate::store::State;

pub(super) fn get(request: &ApiRequest<'_>) -> Result<Response<Body>, Status> {
    let object = request.api.store.read(|state| find(state, request).cloned())?;
    respond(request, StatusCode::OK, &object)
}

/// The object that the path names, or 404.
pub(super) fn find<'s>(state: &'s State, request: &ApiRequest<'_>) -> Result<&'s Arc<Value>, Status> {
    let found = state.get(request.kind, request.namespace().unwrap_or_default(), request.name());
    found.ok_or_else(|| Status::not_found(request.kind.group_resource(), request.name()))
}
