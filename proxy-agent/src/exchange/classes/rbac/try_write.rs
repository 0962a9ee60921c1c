//! Dry runs of writes, whose result the agent checks before it writes exactly that.

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use kube_wire::gvr::GroupKind;
use kube_wire::media::BodyType;
use kube_wire::query::Query;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::protobuf::ObjectName;
use serde_json::Value;
use tunnel::Reservation;

use crate::exchange::api_request::As;
use crate::exchange::classes::rbac::as_tried::{as_tried, without_managers};
use crate::exchange::cost::weight;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::host::read::{collected, refused};
use crate::exchange::host::sample::send_to_decide;
use crate::exchange::kinds::group_kind;
use crate::exchange::plan::Replan;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream::{self, uri};
use crate::exchange::write::deletion::is_dry_run;
use crate::exchange::write::mapped::mapped_body;
use crate::exchange::write::object::received;
use crate::exchange::write::patch::mapped_patch;
use crate::exchange::write::patch::patched::{Patched, put_patched};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use caller::reviews::Attributes;
use host_client::{RequestBody, full};

/// The prefix of the names of the agent's own objects.
pub(crate) const RESERVED: &str = "atoll:";

/// The maximum memory of a parsed object, in bytes: half of a virtual cluster's budget for bodies, because its JSON is
/// in memory, too. Small values take many times their length.
const MAX_MEMORY: usize = 8 << 20;

/// A write that passed the dry run.
pub(crate) struct Tried {
    pub(crate) request: Request<RequestBody>,
    /// Whether the agent repeats the write after a conflict.
    pub(crate) replan: Replan,
    /// The object as the host would store it.
    pub(crate) result: Value,
    /// The charge for `result`, which stays in memory during further requests to the host.
    _charge: Reservation,
    /// Whether the write creates the object.
    pub(crate) is_new: bool,
}

/// Maps a create, update or patch of the object at `path` on the host, and sends it as a dry run.
pub(crate) async fn try_write(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    body: &Bytes,
) -> Result<Tried, Refusal> {
    let mapped = match request.verb() {
        Verb::Patch => {
            mapped_patch(call, request, None, path, body).await.map(|patched| (patched.request, patched.replan))
        }
        _ => match mapped_body(call, request, None, body).await {
            Ok(body) => {
                let target = upstream::target(path, call.api.info.query());
                upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, body)
                    .map(|request| (request, Replan::Never))
            }
            Err(refusal) => Err(refusal),
        },
    };
    let (upstream, replan) = match mapped {
        Ok(mapped) => mapped,
        Err(refusal) => {
            let place = Destination { path, identity: As::Agent, namespace: None, mapping: &call.api.mapping };
            return Err(prefer_host_error(call, request, &place, body, refusal).await);
        }
    };
    // The host would take long to report 60,000 invalid subjects (`aggregate.Error` in apimachinery's
    // `pkg/util/errors` copies the whole text for each error).
    bounded(weight(&upstream.body().bytes()))?;
    let dry = dry_run(&upstream)?;
    let (is_new, text) = dry_run_result(call, request, dry).await?;
    let memory = weight(&text);
    bounded(memory)?;
    let charge = call.collector().reserve(memory)?;
    let result = serde_json::from_slice(&text).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let mut tried = Tried { request: upstream, replan, result, _charge: charge, is_new };
    if request.verb() == Verb::Patch && call.api.patch_type()? == BodyType::ApplyYaml {
        // It stays an apply, because a PUT would record the manager's operation as Update. A client's dry run that
        // creates the object stays as it is, because its response would show the version that `as_tried` adds.
        if !is_new || !is_dry_run(call, body)? {
            let apply = as_tried(&tried.request.body().bytes(), &tried.result, is_new)?;
            *tried.request.body_mut() = full(apply);
            tried.replan = Replan::AfterConflict;
        }
    } else if !is_new && request.verb() != Verb::Create {
        let Patched { request, replan } = put_patched(call, without_managers(text, &tried.result)?, path)?;
        (tried.request, tried.replan) = (request, replan);
    }
    Ok(tried)
}

/// The object that the host would store, as JSON. If the host refuses it, the client gets this refusal.
async fn dry_run_result(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    dry: Request<RequestBody>,
) -> Result<(bool, Bytes), Refusal> {
    let response = send_to_decide(call, dry).await?;
    let is_new = response.status() == StatusCode::CREATED;
    if !response.status().is_success() {
        return Err(refused(call, about, response).await);
    }
    if !is_new {
        // The agent writes this result later, and the host does not repeat its warnings then.
        call.findings().warn_like(&response);
    }
    let body = collected(call, response).await?;
    Ok((is_new, body))
}

/// Checks the right to create an object that an update or an apply creates (`withAuthorization` in apiserver's
/// `handlers/update.go`). `host` is the object's host name, and `is_new` is whether the write creates it.
pub(crate) async fn may_make(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    host: &str,
    is_new: bool,
) -> Result<(), Refusal> {
    if !is_new || request.verb() == Verb::Create {
        return Ok(());
    }
    let create = Attributes { verb: Verb::Create.as_str(), name: host, ..call.api.attributes(request) };
    Ok(call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &create)).await?)
}

/// The name in a new object. Names of the agent's own objects are refused.
pub(crate) fn new_name(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Bytes,
) -> Result<ObjectName, Refusal> {
    let own = received(call, body)?.name()?;
    let name = if own.name.is_empty() { &own.generate_name } else { &own.name };
    if name.starts_with(RESERVED) { Err(reserved(group_kind(request), name)) } else { Ok(own) }
}

pub(crate) fn reserved(kind: GroupKind<'_>, name: &str) -> Refusal {
    let error = FieldError::invalid("metadata.name", name, format!("names that begin with {RESERVED:?} are reserved"));
    Unmapped::refusal(Status::invalid(kind, name, &[error]), DryRunScope::Skip)
}

/// Refuses an object whose parsed form takes too much memory.
pub(crate) fn bounded(memory: usize) -> Result<(), Refusal> {
    if memory <= MAX_MEMORY {
        return Ok(());
    }
    let message =
        format!("this object takes {memory} bytes of memory, and the limit is {MAX_MEMORY}; split it into several");
    Err(Status::request_entity_too_large(&message).into())
}

/// The same request as a dry run.
fn dry_run(write: &Request<RequestBody>) -> Result<Request<RequestBody>, Refusal> {
    let mut query = Query::new(write.uri().query().unwrap_or_default());
    query.set("dryRun", "All");
    let mut dry = Request::new(write.body().replay());
    *dry.method_mut() = write.method().clone();
    *dry.uri_mut() = uri(&upstream::target(write.uri().path(), &query))?;
    *dry.headers_mut() = write.headers().clone();
    dry.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Ok(dry)
}
