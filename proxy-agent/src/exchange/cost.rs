//! What a request costs the agent and the host. The cost of each virtual cluster is limited.

use std::sync::atomic::Ordering;

use host_client::spacing::Turn;
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::gvr::GroupKind;
use kube_wire::media::{BodyType, Encoding};
use kube_wire::query::WriteOptions;
use kube_wire::status::{CauseType, FieldError};
use kube_wire::{RequestInfo, Status, Target, Verb};
use rewrite::field_manager::{self, Defect};
use rewrite::{json, protobuf, yaml};
use serde::de::IgnoredAny;
use tunnel::Reservation;

use crate::exchange::api_request::{ApiRequest, BodyUse};
use crate::exchange::call::Call;
use crate::exchange::kinds::group_kind;
use crate::refusal::{Exhausted, Refusal};
use crate::translate::{Upstream, encoding};
use virtual_cluster::clusters::VirtualCluster;
use virtual_cluster::share::activity::Others;
use virtual_cluster::share::in_flight::Kind;
use virtual_cluster::share::large_objects::{LARGE_LENGTH, MEDIUM_WEIGHT, Size};
use virtual_cluster::share::seats::Load;
use virtual_cluster::share::write_rate::{self, BURST, BURST_OF_DEFINITIONS};
use virtual_cluster::share::write_turns::TooManyWrites;

/// Bodies up to this weight, in bytes, are not charged to the cluster's memory. Those of ordinary requests weigh less.
const UNCHARGED: usize = 32 * 1024;

/// Heads up to this length, in bytes, are not charged. Those of ordinary requests are shorter.
const UNCHARGED_HEAD: usize = 4096;

/// The maximum length of the DeleteOptions of a request, in bytes. They have a few short fields.
const MAX_DELETE_OPTIONS: usize = 64 * 1024;

/// The maximum weight of the fields and elements of an object of a built-in kind, in bytes. An EndpointSlice of 1,000
/// endpoints with hints weighs 5 MiB, and a NetworkPolicy of 3,000 peers 4 MiB.
const MAX_BUILT_IN: usize = 8 << 20;

/// The same for a custom object or a CustomResourceDefinition. There are no samples of a definition, so only the rate
/// limit bounds the errors that the host finds in it.
const MAX_CUSTOM: usize = write_rate::MAX;

/// The cost of a body, for the agent and the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyCost {
    /// A rough upper estimate of the memory of its parsed form, in bytes.
    pub(crate) weight: usize,
    /// Its size class, which decides whether it waits for a turn.
    pub(crate) size: Size,
    /// Whether it may be YAML. The cost of YAML for the host is known only after the conversion to JSON.
    pub(crate) is_yaml: bool,
}

/// A rough upper estimate of the memory of the parsed form of a body in JSON or protobuf, in bytes.
pub(crate) fn weight(body: &[u8]) -> usize {
    match body.strip_prefix(&MAGIC) {
        Some(message) => MAGIC.len() + protobuf::weight(message),
        None => json::weight(body),
    }
}

/// Charges a long head until the response begins, or until the request ends without one.
pub(crate) fn charge_head(
    cluster: &VirtualCluster,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Reservation>, Refusal> {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    match target + fields.sum::<usize>() {
        ..=UNCHARGED_HEAD => Ok(None),
        length => cluster.lasting.memory.heads.reserve(length).map(Some).ok_or(Exhausted::Heads.into()),
    }
}

/// Counts a request until its response has ended.
pub(crate) fn count(cluster: &VirtualCluster, kind: Kind) -> Result<Reservation, Refusal> {
    cluster.lasting.in_flight.admit(kind).ok_or(Exhausted::InFlight(kind).into())
}

/// The kind of a request that does not switch protocols.
pub(crate) fn kind_of(info: &RequestInfo<'_>) -> Kind {
    if info.is_long_running() { Kind::LongRunning } else { Kind::Short }
}

/// The error for the name of a field manager.
fn field_error(field: &str, defect: Defect) -> FieldError {
    match defect {
        Defect::TooLong => FieldError::too_long(field, field_manager::MAX_LENGTH),
        // `FieldError::invalid` would quote the name.
        Defect::NotPrintable => FieldError {
            cause: CauseType::Invalid,
            ..FieldError::forbidden(field, "should only contain printable characters")
        },
    }
}

/// Waits for the seats of the response, unless the request has them.
pub(crate) async fn take_seats(call: &mut Call<'_>) -> Result<(), Refusal> {
    if let Some(load) = load_of(&call.api).filter(|_| call.occupied.is_none()) {
        let lasting = &call.api.cluster.lasting;
        let taken = lasting.seats.take(load, lasting.activity.others());
        call.occupied = Some(call.outside(taken).await.ok_or(Exhausted::Seats)?);
    }
    Ok(())
}

/// The same for a list that a feed answers: it is in memory until the client has read it, but the host does not make it.
pub(crate) async fn take_seats_of_shared_list(call: &mut Call<'_>) -> Result<(), Refusal> {
    let taken = call.api.cluster.lasting.seats.take(Load::Long, Others::Idle);
    call.occupied = Some(call.outside(taken).await.ok_or(Exhausted::Seats)?);
    Ok(())
}

/// Waits for the turn of a write, which lasts until the response begins. Call this before the decision: a write that waits then
/// decides by what is true when it is sent, holds no turn that others need, and can still be cancelled by the client.
pub(crate) async fn take_write_turn(call: &Call<'_>) -> Result<Option<Turn>, Refusal> {
    if call.api.is_read() || call.api.info.is_long_running() {
        return Ok(None);
    }
    let lasting = &call.api.cluster.lasting;
    let taken = lasting.write_turns.take(call.api.caller.virtual_name(), lasting.activity.others());
    call.outside(taken).await.map_err(|TooManyWrites| Exhausted::Writes.into())
}

/// The kind of response, if it occupies seats at the host while it streams.
pub(crate) fn load_of(api: &ApiRequest<'_>) -> Option<Load> {
    match api.info.target() {
        Target::Resource(request) => match request.verb() {
            Verb::Watch if is_resumed(api) => Some(Load::ResumedWatch),
            Verb::Watch => Some(Load::NewWatch),
            Verb::List if is_consistent(api) => Some(Load::List),
            Verb::List => Some(Load::ListAtOnce),
            Verb::DeleteCollection => Some(Load::Long),
            _ => None,
        },
        Target::NonResource(request) => request.path().starts_with("/openapi/").then_some(Load::Long),
    }
}

/// The cost of this body.
pub(crate) fn body_cost(call: &Call<'_>, body: &[u8]) -> BodyCost {
    let content_type = call.api.content_type();
    let body_type = BodyType::of_patch(content_type).or_else(|_| BodyType::of_object(content_type));
    let is_yaml = matches!(body_type, Ok(BodyType::ApplyYaml | BodyType::Object(Encoding::Yaml)));
    // YAML that is also JSON is weighed as JSON. A longer body is large in any case, so it is not parsed to find
    // out.
    let is_estimated = is_yaml && body.len() <= LARGE_LENGTH && serde_json::from_slice::<IgnoredAny>(body).is_err();
    let weight = if is_estimated { yaml::weight(body) } else { weight(body) };
    BodyCost { weight, size: Size::of(body.len(), weight), is_yaml }
}

/// Charges the parsed form of a body to the cluster's memory. Large bodies wait for their turn instead.
pub(crate) fn charge(call: &Call<'_>, cost: BodyCost) -> Result<Option<Reservation>, Refusal> {
    match cost.size {
        Size::Small | Size::Medium if cost.weight > UNCHARGED => call.collector().reserve(cost.weight).map(Some),
        _ => Ok(None),
    }
}

/// Counts a received body towards the rate limit, because a plan may send it to the host in dry runs. Refuses long
/// DeleteOptions. A YAML body is counted after its conversion to JSON. DeleteOptions go to the host unchanged, so
/// they are counted here.
pub(crate) fn admit_received(call: &Call<'_>, body: &[u8], cost: BodyCost) -> Result<(), Refusal> {
    let is_delete = call.api.info.method() == Method::DELETE;
    if is_delete && body.len() > MAX_DELETE_OPTIONS {
        return Err(Status::request_entity_too_large(&format!("limit is {MAX_DELETE_OPTIONS}")).into());
    }
    if cost.is_yaml && !is_delete { Ok(()) } else { admit_weight(call, cost.weight, body) }
}

/// Counts a body in JSON or protobuf that goes to the host. A body that goes there several times, in different
/// forms or after a conflict, counts only once.
pub(crate) fn admit_sent(call: &Call<'_>, body: &[u8]) -> Result<(), Refusal> {
    admit_weight(call, weight(body), body)
}

/// Refuses a body with too many fields and elements (413), and counts its weight towards the rate limit (429).
fn admit_weight(call: &Call<'_>, weight: usize, body: &[u8]) -> Result<(), Refusal> {
    let (parts, limit) = (weight.saturating_sub(body.len()), max_parts(call));
    // A client that updates an object returns the names of managed fields, which the host has made.
    let names = || json::weight_of_managed_names(body).unwrap_or_default();
    if parts > limit && (parts > MAX_CUSTOM || parts.saturating_sub(names()) > limit) {
        let message = format!(
            "the object has too many fields and elements: they take about {parts} bytes of memory, and the limit is \
             {limit}"
        );
        return Err(Status::request_entity_too_large(&message).into());
    }
    // A patch is never too light for the rate limit: its cost depends on the object, which may be large.
    let least = if call.api.info.method() == Method::PATCH { MEDIUM_WEIGHT + 1 } else { 0 };
    let counted = call.counted_weight.fetch_max(weight, Ordering::Relaxed);
    let (rate, weight) = (&call.api.cluster.lasting.write_rate, weight.saturating_sub(counted).max(least));
    let burst = if call.api.is_of_definitions() { BURST_OF_DEFINITIONS } else { BURST };
    rate.admit(weight, burst).or_else(|_| {
        // The host has already encoded the object that this write would change. The second call includes that in
        // the wait.
        rate.read(call.read_weight.swap(0, Ordering::Relaxed));
        rate.admit(weight, burst).map_err(|wait| Exhausted::Weight(wait).into())
    })
}

/// Refuses a long name of a field manager in the query, in which the host could find many errors.
pub(crate) fn check_field_manager(call: &Call<'_>) -> Result<(), Refusal> {
    let options = match *call.api.info.method() {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => return Ok(()),
    };
    if WriteOptions::parse(call.api.info.query())?.field_manager.len() <= field_manager::MAX_LENGTH {
        return Ok(());
    }
    let kind = GroupKind { group: "meta.k8s.io", kind: options };
    Err(Status::invalid(kind, "", &[field_error("fieldManager", Defect::TooLong)]).into())
}

/// Refuses a body whose managed fields have a name that is too long, or names with too many characters that might
/// not be printable.
pub(crate) fn check_managed_fields(call: &Call<'_>, body: &[u8]) -> Result<(), Refusal> {
    let Some(request) = call.api.info.resource().filter(|_| call.api.body_use() == BodyUse::Mapped) else {
        return Ok(());
    };
    let defect = match body.strip_prefix(&MAGIC) {
        Some(_) => Envelope::decode(body).ok().and_then(|envelope| field_manager::in_protobuf(envelope.raw)),
        // The host refuses a body that is not JSON before it looks at names.
        None => field_manager::in_json(body).unwrap_or_default(),
    };
    let Some(defect) = defect else { return Ok(()) };
    let error = field_error("metadata.managedFields[].manager", defect);
    Err(Status::invalid(group_kind(request), request.path_name().unwrap_or_default(), &[error]).into())
}

/// The maximum weight of the fields and elements of an object of this kind, without its text.
fn max_parts(call: &Call<'_>) -> usize {
    if call.api.is_built_in() && !call.api.is_of_definitions() { MAX_BUILT_IN } else { MAX_CUSTOM }
}

/// Counts the response to a write towards the rate limit, if it is a refusal.
pub(crate) async fn count_refusal(
    call: &Call<'_>,
    response: Response<Upstream>,
) -> Result<Response<Upstream>, Refusal> {
    let is_refusal = response.status().is_client_error() || response.status().is_server_error();
    if !is_refusal || call.api.body_use() != BodyUse::Mapped || encoding(response.headers()).is_none() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let (length, body) = Box::pin(body.collect_or_drain(call.answer_collector())).await;
    count_refusal_of(call, parts.status, length);
    Ok(Response::from_parts(parts, Upstream::Whole(body?)))
}

/// Counts a refusal of this status and length towards the rate limit. The agent has already read its body.
pub(crate) fn count_refusal_of(call: &Call<'_>, status: StatusCode, length: usize) {
    let rate = &call.api.cluster.lasting.write_rate;
    // A client can choose a short timeout for any request. Only a costly one can occupy the host after the timeout.
    let is_costly = call.api.info.method() == Method::PATCH
        || call.counted_weight.load(Ordering::Relaxed).max(call.read_weight.load(Ordering::Relaxed)) > MEDIUM_WEIGHT;
    if status == StatusCode::GATEWAY_TIMEOUT && is_costly {
        rate.timed_out();
    }
    rate.refused(length);
}

/// Whether a watch sends only the events since a resource version, as `listWorkEstimator` decides it.
fn is_resumed(api: &ApiRequest<'_>) -> bool {
    let query = api.info.query();
    let version = query.first("resourceVersion").ok().flatten();
    // `00` is the version 0, from which the watch cache sends all objects (`ParseResourceVersion` in apiserver's
    // `pkg/storage/etcd3`).
    let is_later = version.is_some_and(|version| version.parse::<u64>().is_ok_and(|version| version > 0));
    is_later && !query.contains("sendInitialEvents")
}

/// Whether this is a consistent read, for which the host may wait until its watch cache is up to date (KEP-2340): a
/// list with neither `resourceVersion` nor `continue` (`delegateList` in apiserver's
/// `pkg/storage/cacher/delegator.go`).
fn is_consistent(api: &ApiRequest<'_>) -> bool {
    let query = api.info.query();
    let given = |key| query.first(key).ok().flatten().is_some_and(|value| !value.is_empty());
    !given("resourceVersion") && !given("continue")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protobuf envelope does not hide the weight of the content, whatever the kind is.
    #[test]
    fn empty_messages_weigh_as_much_in_every_kind() {
        let containers = [0x12, 0].repeat(15_000);
        let least = protobuf::weight(&containers);
        for (api_version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "List"), ("a.example.com/v1", "K")]
        {
            let body = Envelope { api_version, kind, raw: &containers, ..Envelope::default() }.encode();
            assert!(weight(&body) >= least, "{kind}: {}", weight(&body));
        }
    }
}
