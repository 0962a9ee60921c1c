//! `deletecollection`: each selected object is deleted as by a `delete` of its own.

use http::{Method, StatusCode};
use kube_wire::name::SegmentName;
use kube_wire::query::ListOptions;
use kube_wire::{ResourceRequest, Status};
use serde_json::value::RawValue;

use crate::exchange::attempts::MAX_CONFLICTS;
use crate::exchange::body::Body;
use crate::exchange::classes::shared::leave::leave;
use crate::exchange::classes::shared::read::{list_shared, selected_labels};
use crate::exchange::classes::shared::requests::{Written, accepted_body};
use crate::exchange::classes::shared::stored::{load_overlay, settle_overlay};
use crate::exchange::plan::Plan;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use host_client::api::{ApiError, HostApi as _, Selection, Shape};
use virtual_cluster::shared::HostObject;

/// Deletes the selected objects. The response lists those that remain, because they have finalizers. An object of
/// the operator stays: the agent deletes the others, and then refuses the request.
pub(crate) async fn leave_collection(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let plan = list_shared(call, request, Method::GET)?;
    let mut refused = None;
    for name in selected(call, request).await? {
        match leave_one(call, request, written, &name, body).await {
            // Another client has deleted it in the meantime.
            Err(Refusal::Status(status)) if status.code == 404 => {}
            Err(Refusal::Status(status)) if status.code < 500 => {
                refused.get_or_insert(status);
            }
            left => left?,
        }
    }
    match refused {
        Some(status) => Err(Refusal::Status(status)),
        None => Ok(plan),
    }
}

/// The names of the objects that the virtual cluster sees and that the request selects.
async fn selected(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Vec<String>, Refusal> {
    let cluster = call.api.cluster.name.as_str();
    let labels = selected_labels(call)?;
    let fields = ListOptions::parse(call.api.info.query())?.field_selector.to_string();
    let selection = Selection { fields, shape: Shape::Metadata, ..Selection::default() };
    let unreadable = |error: ApiError| match error.status() {
        Some(status) if status.code < 500 => Refusal::from(status.clone()),
        _ => Status::service_unavailable(format!("cannot list the objects on the host: {error}"))
            .with_retry_after(1)
            .into(),
    };
    let (api, path) = (call.host_api(), request.path().build());
    let mut pages = api.pages(&path, &selection);
    let mut selected = Vec::new();
    while let Some(page) = pages.next::<Box<RawValue>>().await.map_err(unreadable)? {
        for text in page {
            // One at a time: a parsed object is many times as large as its JSON.
            let object = serde_json::from_str(text.get()).map_err(|error| Refusal::Unreadable(error.to_string()))?;
            let object = HostObject::new(object);
            if !object.is_seen_by(cluster) {
                continue;
            }
            let object = load_overlay(call, object).await?;
            let shown = object.labels_shown_to(cluster);
            if labels.matches(|key| shown.get(key).map(String::as_str)) {
                selected.push(object.text("name").to_owned());
            }
        }
    }
    Ok(selected)
}

async fn leave_one(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    name: &str,
    body: &Body,
) -> Result<(), Refusal> {
    let segment = SegmentName::new(name.to_owned());
    let segment = segment.map_err(|_| Refusal::Unreadable("an object's name cannot be in a path".to_owned()))?;
    let mut path = request.path();
    path.name = Some(segment.borrowed());
    let path = path.build();
    for attempt in 0.. {
        let plan = leave(call, request, written, name, &path, body).await?;
        let accepted = accepted_body(call, request, plan.request).await;
        call.turn.release_memory();
        match accepted {
            Err(Refusal::Status(status)) if status.code == StatusCode::CONFLICT && attempt < MAX_CONFLICTS => {}
            Err(refusal) => return Err(refusal),
            Ok(_) => {
                settle_overlay(call, plan.moved, StatusCode::OK).await;
                return Ok(());
            }
        }
    }
    unreachable!("the last attempt returns")
}
