//! Whole objects in the place of others (PUT).

use http::{Response, StatusCode, header};
use kube_wire::{ResourceRequest, Status};

use super::create::{ELSEWHERE, check_type};
use super::read::find;
use super::{Part, settle};
use crate::answer::Body;
use crate::kinds::Kind;
use crate::object;
use crate::serve::{Call, Sent};

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
        if object::name(&object) != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                object::name(&object)
            )));
        }
        let namespace = object::namespace(&object);
        if kind.namespaced && !namespace.is_empty() && request.namespace() != Some(namespace) {
            return Err(Status::bad_request(ELSEWHERE));
        }
        let written = self.api.store.write(|state| {
            let found = std::sync::Arc::clone(find(state, kind, request)?);
            settle(state, kind, self.writer(&manager), &found, object, part, options.dry_run)
        })?;
        self.show(StatusCode::OK, kind, &written.object)
    }
}
