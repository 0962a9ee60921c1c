//! The stacks of the agent: all phases of a request, and of one that switches protocols, and why they are in this order.

use std::pin::Pin;

use ::tunnel::{Inbound, Reservation};
use feeds::AtHost;
use http::Response;
use kube_wire::{RequestInfo, ResourceRequest, Verb};
use request_traces::Phase;
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};

use crate::exchange::authenticate::authenticate;
use crate::exchange::authorise::Authenticated;
use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::carry_out::carry_out;
use crate::exchange::cost;
use crate::exchange::findings::Findings;
use crate::exchange::incoming::{Admitted, Incoming, RequestGuards};
use crate::exchange::phase::phase;
use crate::exchange::upgrade::{self, Handshake};
use crate::refusal::Refusal;
use crate::translate::ShownBody;
use virtual_cluster::share::in_flight::Kind;
use virtual_cluster::share::seats::Seated;

/// The response for the client.
pub(super) struct ExchangeResponse {
    pub(super) response: Response<Seated<ShownBody>>,
    pub(super) is_watch: bool,
    /// Whether it may be compressed on its way to the proxy-server.
    pub(super) is_compressible: bool,
    /// Keep it until the response has ended.
    pub(super) counted: Counted,
}

/// Keeps the request counted until its response has ended.
pub(super) struct Counted {
    _in_flight: Reservation,
    _at_host: Option<AtHost>,
}

/// A request within the limits.
struct Limited<'a> {
    incoming: Incoming<'a>,
    info: RequestInfo<'a>,
    held: RequestGuards,
}

/// A request that passes through phases to a response.
pub(super) type Passing<'a, R> = Pin<Box<dyn Future<Output = Result<R, Refusal>> + Send + 'a>>;

/// Passes a request that switches protocols through its stack.
///
/// Boxed for the same reason as [`serve`].
pub(super) fn serve_upgrade(incoming: Incoming<'_>, handshake: Handshake) -> Passing<'_, upgrade::UpgradeResponse> {
    Box::pin(upgrade_stack(handshake).oneshot(incoming))
}

/// Passes a request through the stack.
///
/// Boxed, because otherwise the compiler cannot prove that the future is `Send` (rust-lang/rust#110338).
pub(super) fn serve(incoming: Incoming<'_>) -> Passing<'_, ExchangeResponse> {
    Box::pin(stack().oneshot(incoming))
}

/// All phases, in the order in which a request passes through them.
fn stack<'a>() -> impl Service<Incoming<'a>, Response = ExchangeResponse, Error = Refusal, Future: Send> {
    ServiceBuilder::new()
        // First, because a client needs no credentials to use up what all clients share. It knows only the head.
        .layer(phase(limits))
        // Before anything is asked of the host about the request, apart from the owner of a token.
        .layer(phase(identify))
        // As far as the head allows. A caller without the right costs two reviews, which are cached.
        .layer(phase(authorise))
        // After `authorise`, because a cluster has few sessions, and others must not use them up.
        .layer(phase(begin_proxied))
        // After `authorise`, because a body occupies memory, and its client decides how long.
        .layer(phase(receive_body))
        // Behind the body, so that a slow client occupies no seat at the host while it sends.
        .layer(phase(take_seats))
        // Decides, sends and transforms, perhaps more than once: a retry needs none of the phases above.
        // Boxed, because the state of the phases above would move together with this one, which is the largest.
        .service(service_fn(|ready| Box::pin(respond(ready)) as Passing<'_, ExchangeResponse>))
}

/// The phases of a request that switches protocols. The first three are those of any request, for the same reasons. Such a
/// request has no body, and its response occupies no seats.
fn upgrade_stack<'a>(
    handshake: Handshake,
) -> impl Service<Incoming<'a>, Response = upgrade::UpgradeResponse, Error = Refusal, Future: Send> {
    ServiceBuilder::new()
        .layer(phase(limits))
        .layer(phase(identify))
        .layer(phase(authorise))
        // After `authorise`, because a cluster has few sessions, and others must not use them up.
        .layer(phase(begin_session))
        .service(service_fn(move |admitted| upgrade::switch(admitted, handshake.clone())))
}

/// Charges a long head, counts the request, and refuses requests until the cluster can be served.
async fn limits(incoming: Incoming<'_>) -> Result<Limited<'_>, Refusal> {
    let Incoming { services, cluster, method, uri, ref headers, .. } = incoming;
    let charge = cost::charge_head(cluster, uri, headers)?;
    let info = RequestInfo::parse(method, uri.path(), uri.query());
    let info = info.map_err(|error| Refusal::from(&error))?;
    incoming.record.parsed(&info);
    let kind = if incoming.is_upgrade { Kind::Short } else { cost::kind_of(&info) };
    let in_flight = cost::count(cluster, kind)?;
    services.admit(cluster).await?;
    Ok(Limited { incoming, info, held: RequestGuards { in_flight, _charge: charge } })
}

async fn identify(limited: Limited<'_>) -> Result<Admitted<'_, Authenticated<'_>, Inbound>, Refusal> {
    let Limited { incoming, info, held } = limited;
    let Incoming { services, cluster, headers, body, commitment, record, .. } = incoming;
    let span = record.phase(Phase::Authenticate);
    let mut call = authenticate(services, cluster, info, headers, record.audit.as_deref_mut()).await?;
    drop(span);
    record.identified(call.caller());
    call.trace_below(record.parent());
    Ok(Admitted { call, body, commitment, record, held })
}

/// Also records that the virtual cluster is active.
async fn authorise<'a>(
    admitted: Admitted<'a, Authenticated<'a>, Inbound>,
) -> Result<Admitted<'a, Box<Call<'a>>, Inbound>, Refusal> {
    let Admitted { call, body, commitment, record, held } = admitted;
    let span = record.phase(Phase::Authorise);
    let call = call.authorise().await?;
    drop(span);
    call.api.cluster.lasting.activity.record();
    Ok(Admitted { call, body, commitment, record, held })
}

/// Counts the request as a session instead of a short or a long-running one.
async fn begin_session<'a>(
    mut admitted: Admitted<'a, Box<Call<'a>>, Inbound>,
) -> Result<Admitted<'a, Box<Call<'a>>, Inbound>, Refusal> {
    admitted.held.in_flight = cost::count(admitted.call.api.cluster, Kind::Session)?;
    Ok(admitted)
}

/// Counts a request to the server of a pod as a session, too: it has a connection to the host of its own.
async fn begin_proxied<'a>(
    admitted: Admitted<'a, Box<Call<'a>>, Inbound>,
) -> Result<Admitted<'a, Box<Call<'a>>, Inbound>, Refusal> {
    let subresource = admitted.call.api.info.resource().and_then(ResourceRequest::subresource);
    if subresource == Some("proxy") { begin_session(admitted).await } else { Ok(admitted) }
}

async fn receive_body<'a>(
    admitted: Admitted<'a, Box<Call<'a>>, Inbound>,
) -> Result<Admitted<'a, Box<Call<'a>>, Body>, Refusal> {
    let Admitted { call, body, commitment, record, held } = admitted;
    let body = Body::receive(body, call.api.body_use(), &call.api.cluster.lasting.memory.bodies).await?;
    Ok(Admitted { call, body, commitment, record, held })
}

/// Waits for the seats of a response that occupies the host while it streams. A list or a watch that a
/// feed may serve takes them later.
async fn take_seats<'a>(
    mut admitted: Admitted<'a, Box<Call<'a>>, Body>,
) -> Result<Admitted<'a, Box<Call<'a>>, Body>, Refusal> {
    let call = &mut admitted.call;
    let verb = call.api.info.resource().map(ResourceRequest::verb);
    let may_be_shared = matches!(verb, Some(Verb::List | Verb::Watch)) && call.services.sharing.is_some();
    if !may_be_shared {
        cost::take_seats(call).await?;
    }
    Ok(admitted)
}

async fn respond<'a>(admitted: Admitted<'a, Box<Call<'a>>, Body>) -> Result<ExchangeResponse, Refusal> {
    let Admitted { mut call, body, commitment, record, held } = admitted;
    if let Some(audit) = &mut record.audit {
        audit.received(&call, &body);
    }
    let mut findings = Findings::default();
    let response = carry_out(&mut call, &body, commitment, &mut findings).await;
    let response = response.inspect_err(|_| record.warned(call.shown_warnings(&findings)))?;
    if let Some(audit) = &mut record.audit {
        audit.responded(call.api.info.resource(), &response);
    }
    let response = response.map(|body| match body.read_timeout() {
        // The host has sent all of it, so it occupies no seats.
        Some(read_timeout) => Seated::in_memory(body, read_timeout),
        None => Seated::new(body, call.occupied.take()),
    });
    let request = call.api.info.resource();
    let is_watch = request.is_some_and(|request| request.verb() == Verb::Watch);
    let is_compressible = request.is_none_or(is_compressible);
    let counted = Counted { _in_flight: held.in_flight, _at_host: call.at_host.take() };
    Ok(ExchangeResponse { response, is_watch, is_compressible, counted })
}

/// Whether a response may be compressed. Secrets, logs and responses of the subresource `proxy` may not: such a
/// response can contain secrets next to data that other users have written, so its compressed length could disclose the
/// secrets (as in CVE-2013-3587).
fn is_compressible(request: &ResourceRequest<'_>) -> bool {
    (request.group(), request.resource()) != ("", "secrets") && !matches!(request.subresource(), Some("proxy" | "log"))
}
