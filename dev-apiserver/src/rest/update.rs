//! Whole objects in the place of others (PUT).

use http::{Response, StatusCode, header};
use kube_wire::{ResourceRequest, Status};

use super::read::find;
use super::scope;
use crate::access::rbac::{RequestAttributes, allows};
use crate::answer::Body;
use crate::kinds::Kind;
use crate::serve::{Call, Sent};
use crate::store::State;
use crate::write::{self, Part, check_name, check_namespace, check_type, create};

/// The group whose objects an update makes if they are not there (`AllowCreateOnUpdate` in the strategies of
/// pkg/registry/rbac).
const RBAC: &str = "rbac.authorization.k8s.io";

// === impl Call ===

impl Call<'_> {
    pub(super) async fn update(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        part: Part,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options()?;
        let manager = self.manager()?;
        let mut object = sent.object(self.header(header::CONTENT_TYPE)).await?;
        check_type(kind, &object)?;
        self.conform(kind, &mut object)?;
        let name = request.path_name().unwrap_or_default();
        check_name(&object, name)?;
        if kind.namespaced {
            check_namespace(&object, request.namespace().unwrap_or_default())?;
        }
        let (code, written) = self.api.store.write(|state| {
            let found = match find(state, kind, request) {
                Ok(found) => std::sync::Arc::clone(found),
                Err(status) if kind.group != RBAC || part != Part::Main => return Err(status),
                // It was there, and is not any more: what the object is called by says so.
                Err(_) if ["uid", "resourceVersion"].iter().any(|key| !object["metadata"][key].is_null()) => {
                    let why = "Precondition failed: the object does not exist";
                    return Err(Status::conflict(kind.group_resource(), name, why));
                }
                Err(_) => {
                    self.may_create(state, kind, request)?;
                    let namespace = scope(kind, request).unwrap_or_default();
                    let created = create(state, kind, namespace, object, self.writer(&manager), options.dry_run)?;
                    return Ok((StatusCode::CREATED, created));
                }
            };
            let written = write::update(state, kind, self.writer(&manager), &found, object, part, options.dry_run)?;
            Ok((StatusCode::OK, written))
        })?;
        self.show(code, kind, &written)
    }

    /// An update that makes what is not there needs the right to create it, too (`withAuthorization` in apiserver's
    /// `handlers/create.go`).
    fn may_create(&self, state: &State, kind: &Kind, request: &ResourceRequest<'_>) -> Result<(), Status> {
        let attributes = RequestAttributes::Resource {
            verb: "create",
            group: kind.group,
            resource: kind.resource,
            subresource: None,
            namespace: request.namespace(),
            name: request.path_name(),
        };
        if allows(state, &self.user, &attributes) { Ok(()) } else { Err(attributes.forbidden(&self.user)) }
    }
}
