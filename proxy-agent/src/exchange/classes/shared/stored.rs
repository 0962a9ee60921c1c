//! Reads and writes of overlays that are stored separately from their object.

use bytes::Bytes;
use http::{Response, StatusCode};
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status};
use rewrite::pointer::{Pointer, Pointers};
use tracing::debug;

use crate::exchange::call::Call;
use crate::exchange::kinds::group_kind;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;
use crate::translate::{Overlaid, Read, ResponseTransform, Upstream};
use host_client::HostBodyError;
use host_client::api::ApiError;
use virtual_cluster::policy;
use virtual_cluster::shared::{HostObject, MAX_IN_PLACE, MAX_OVERLAY, Moved, overlays};

/// The same object with the cluster's overlay in place.
pub(crate) async fn load_overlay(call: &Call<'_>, mut object: HostObject) -> Result<HostObject, Refusal> {
    let name = &call.api.cluster.name;
    if let Some(pointer) = object.attached().pointer(name.as_str()) {
        let api = call.host_api();
        let overlay = call.outside(Box::pin(overlays::read(&api, name, &pointer.id))).await;
        let overlay = overlay.map_err(|error| unread(&error))?;
        object.load(name.as_str(), pointer, overlay.unwrap_or_default());
    }
    Ok(object)
}

/// Stores the new overlay of the object, if it is too large for the annotation.
pub(crate) async fn store_overlay(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    object: &mut HostObject,
    is_dry_run: bool,
) -> Result<Moved, Refusal> {
    let name = &call.api.cluster.name;
    let Some(mut overlay) = object.attached().overlay(name.as_str()) else { return Ok(Moved::default()) };
    let (before, pending_change) = (object.stored().cloned(), overlay.pending_change.clone());
    let length = overlay.text().len();
    if length > MAX_OVERLAY {
        let detail = format!(
            "a virtual cluster can store at most {MAX_OVERLAY} bytes of labels and annotations on a shared \
             object, including the keys that each field manager applies"
        );
        let errors = [FieldError::forbidden("metadata", &detail)];
        return Err(Status::invalid(group_kind(request), object.text("name"), &errors).into());
    }
    if length <= MAX_IN_PLACE {
        return Ok(Moved { to: None, from: before.map(|before| before.id).filter(|_| !is_dry_run) });
    }
    overlay.pending_change = None;
    if let Some(before) = &before
        && before.overlay == overlay
    {
        object.point(name.as_str(), &Pointer { id: before.id.clone(), pending_change });
        return Ok(Moved::default());
    }
    if is_dry_run {
        let id = call.services.overlays.try_out(name, &overlay);
        object.point(name.as_str(), &Pointer { id, pending_change });
        return Ok(Moved::default());
    }
    let mut path = request.path();
    path.name = None;
    let path = format!("{}/{}", path.build(), object.text("name"));
    let api = call.host_api();
    let id = call.outside(Box::pin(call.services.overlays.store(&api, name, &path, &overlay))).await;
    let id = id.map_err(|error| match error.status() {
        // The host's message would name the agent's account, which lacks a right that it should have.
        Some(status) if status.code == 403 => forbidden(request, policy::NOT_GRANTED),
        _ => {
            let message = format!("cannot store the labels and annotations of the object on the host: {error}");
            Status::service_unavailable(message).with_retry_after(1).into()
        }
    })?;
    object.point(name.as_str(), &Pointer { id: id.clone(), pending_change });
    Ok(Moved { to: Some(id), from: before.map(|before| before.id) })
}

/// Deletes the overlay that a write has replaced. If this fails, the overlay is an orphan.
pub(crate) async fn settle_overlay(call: &Call<'_>, moved: Moved, status: StatusCode) {
    let useless = if status.is_success() { moved.from } else { moved.to };
    if let Some(id) = useless
        && let Err(error) = Box::pin(overlays::remove(&call.host_api(), &call.api.cluster.name, &id)).await
    {
        debug!(error = &error as &dyn std::error::Error, "cannot delete an unused overlay yet");
    }
}

/// The host's response with overlays inserted, if the response can have overlays.
pub(crate) fn overlaid(
    call: &Call<'_>,
    transform: &ResponseTransform,
    response: Response<Upstream>,
) -> Response<Upstream> {
    if !transform.is_of_shared() {
        return response;
    }
    let (overlays, api, name) = (call.services.overlays.clone(), call.host_api(), call.api.cluster.name.clone());
    let read: Read = Box::new(move |id| {
        let (overlays, api, name) = (overlays.clone(), api.clone(), name.clone());
        Box::pin(async move {
            let shown: Result<Bytes, ApiError> = overlays.shown(&api, &name, &id).await;
            shown.map_err(|error| HostBodyError::Broken(error.into()))
        })
    });
    let pointers = Pointers::of(&call.api.cluster.name);
    response.map(|body| match body {
        Upstream::Stream(body) => Upstream::Overlaid(Overlaid::new(body, pointers, read)),
        whole => whole,
    })
}

fn unread(error: &ApiError) -> Refusal {
    let message = format!("cannot read the labels and annotations of the object from the host: {error}");
    Status::service_unavailable(message).with_retry_after(1).into()
}
