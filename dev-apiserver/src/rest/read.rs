//! One object.

use std::sync::Arc;

use http::{Response, StatusCode};
use kube_wire::{ResourceRequest, Status};
use serde_json::Value;

use super::scope;
use crate::answer::Body;
use crate::kinds::Kind;
use crate::serve::Call;
use crate::store::State;

// === impl Call ===

impl Call<'_> {
    pub(super) fn get(&self, kind: &'static Kind, request: &ResourceRequest<'_>) -> Result<Response<Body>, Status> {
        let object = self.api.store.read(|state| find(state, kind, request).cloned())?;
        self.show(StatusCode::OK, kind, &object)
    }
}

/// The object that a path names, or 404.
pub(super) fn find<'s>(
    state: &'s State,
    kind: &'static Kind,
    request: &ResourceRequest<'_>,
) -> Result<&'s Arc<Value>, Status> {
    let name = request.path_name().unwrap_or_default();
    let found = state.get(kind, scope(kind, request).unwrap_or_default(), name);
    found.ok_or_else(|| Status::not_found(kind.group_resource(), name))
}
