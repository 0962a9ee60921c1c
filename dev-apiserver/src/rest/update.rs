//! Replacing objects (PUT).

use std::sync::Arc;

use http::{Response, StatusCode};
use kube_wire::Status;

use super::decode;
use super::read::find;
use super::request::ApiRequest;
use super::shape::respond;
use crate::auth::rbac::allows;
use crate::body::RequestBody;
use crate::response::Body;
use crate::store::State;
use crate::write::{self, Part, check_name, check_namespace};

/// The group whose objects an update creates if they do not exist (`AllowCreateOnUpdate` in the strategies of
/// `pkg/registry/rbac`).
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) async fn update(request: &ApiRequest<'_>, part: Part, body: RequestBody) -> Result<Response<Body>, Status> {
    let options = request.write_options()?;
    let manager = request.manager()?;
    let object = decode::object(request, body).await?;
    let (kind, namespace) = (request.kind, request.namespace().unwrap_or_default());
    check_name(&object, request.name())?;
    if kind.namespaced {
        check_namespace(&object, namespace)?;
    }
    let (code, written) = request.api.store.write(|state| {
        let writer = request.writer(&manager);
        let found = match find(state, request) {
            Ok(found) => Arc::clone(found),
            Err(status) if kind.group != RBAC || part != Part::Main => return Err(status),
            // The client updates an object that existed before.
            Err(_) if ["uid", "resourceVersion"].iter().any(|key| !object["metadata"][key].is_null()) => {
                let why = "Precondition failed: the object does not exist";
                return Err(Status::conflict(kind.group_resource(), request.name(), why));
            }
            Err(_) => {
                check_create(request, state)?;
                let created = write::create(state, kind, namespace, object, writer, options.dry_run)?;
                return Ok((StatusCode::CREATED, created));
            }
        };
        let written = write::update(state, kind, writer, &found, object, part, options.dry_run)?;
        Ok((StatusCode::OK, written))
    })?;
    respond(request, code, &written)
}

/// An update that creates an object also requires the right to create it (`withAuthorization` in apiserver's
/// `handlers/create.go`).
fn check_create(request: &ApiRequest<'_>, state: &State) -> Result<(), Status> {
    let attributes = request.attributes("create");
    if allows(state, request.user, &attributes) { Ok(()) } else { Err(attributes.forbidden(request.user)) }
}
