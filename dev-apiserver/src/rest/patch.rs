//! PATCH: read, change and write in one moment, so that there is never a conflict with a writer in between.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::gvr::GroupKind;
use kube_wire::media::BodyType;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status};
use serde_json::Value;

use super::read::find;
use super::scope;
use crate::answer::Body;
use crate::kinds::Kind;
use crate::object;
use crate::patch::{Applied, apply, first_apply, patched};
use crate::serve::{Call, Sent, json_only, parse_json, parse_yaml};
use crate::store::State;
use crate::write::{self, Part, Writer, check_name, check_namespace, check_type, create, validate};

// === impl Call ===

impl Call<'_> {
    pub(super) async fn patch(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        part: Part,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let patch_type = self.patch_type()?;
        let bytes = sent.bytes().await?;
        if patch_type == BodyType::ApplyYaml {
            let config = parse_yaml(&bytes)?;
            return self.apply(kind, request, part, config);
        }
        let patch = parse_json(&bytes)?;
        let options = self.write_options()?;
        let manager = self.manager()?;
        let written = self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            let mut object = patched(patch_type, &found, &patch)?;
            check_name(&object, object::name(&found))?;
            check_namespace(&object, object::namespace(&found))?;
            self.conform(kind, &mut object)?;
            write::update(state, kind, self.writer(&manager), &found, object, part, options.dry_run)
        })?;
        self.show(StatusCode::OK, kind, &written)
    }

    /// What kind of patch it is; CBOR is not read.
    pub(super) fn patch_type(&self) -> Result<BodyType, Status> {
        let content_type = self.header(header::CONTENT_TYPE);
        match BodyType::of_patch(content_type).map_err(Status::unsupported_media_type)? {
            BodyType::ApplyCbor => Err(json_only()),
            known => Ok(known),
        }
    }

    fn apply(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        part: Part,
        mut config: Value,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options()?;
        if options.field_manager.is_empty() {
            let kind = GroupKind { group: "meta.k8s.io", kind: "PatchOptions" };
            let missing = FieldError::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid(kind, "", &[missing]));
        }
        validate::types(&config)?;
        self.conform(kind, &mut config)?;
        check_type(kind, &config)?;
        if config["apiVersion"].is_null() || config["kind"].is_null() {
            return Err(Status::bad_request("apiVersion and kind must be set in an apply patch"));
        }
        if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let name = request.path_name().unwrap_or_default();
        if !object::name(&config).is_empty() {
            check_name(&config, name)?;
        }
        object::metadata(&mut config).insert("name".to_owned(), name.into());
        object::drop_nulls(&mut config);
        let subresource = if part == Part::Status { "status" } else { "" };
        let applied = Applied { manager: &options.field_manager, force: options.force, subresource };
        let namespace = scope(kind, request).unwrap_or_default();
        let by = Writer { user: Some(&self.user), manager: None };
        let write = |state: &mut State| {
            let Some(found) = state.get(kind, namespace, name).map(Arc::clone) else {
                if part == Part::Status {
                    return Err(Status::not_found(kind.group_resource(), name));
                }
                let object = first_apply(kind, applied, &config);
                return create(state, kind, namespace, object, by, options.dry_run)
                    .map(|created| (StatusCode::CREATED, created));
            };
            let object = apply(kind, applied, &found, &config)?;
            let written = write::update(state, kind, by, &found, object, part, options.dry_run)?;
            Ok((StatusCode::OK, written))
        };
        let (code, object) = self.api.store.write(write)?;
        self.show(code, kind, &object)
    }
}
