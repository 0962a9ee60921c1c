//! The phases `decide`, `send` and `transform` of an authorised request, and their retries.

use std::ops::ControlFlow;
use std::pin::pin;

use http::{Request, Response, StatusCode};
use tokio::time::sleep;

use crate::exchange::attempts::{Cause, End};
use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::classes::shared::redefined;
use crate::exchange::classes::shared::stored::{overlaid, settle_overlay};
use crate::exchange::commitment::Commitment;
use crate::exchange::complete::complete;
use crate::exchange::cost::{
    admit_received, admit_sent, body_cost, charge, check_field_manager, check_managed_fields, count_refusal,
    take_seats, take_write_turn,
};
use crate::exchange::decide::decide;
use crate::exchange::findings::Findings;
use crate::exchange::head;
use crate::exchange::host::sample::send;
use crate::exchange::plan::{Plan, Replan};
use crate::exchange::rights::may_watch_at_host;
use crate::exchange::shared_list::{feed_list_query, shared_list};
use crate::exchange::shared_watch::{shareable, shared_watch};
use crate::exchange::{upstream, written};
use crate::refusal::Refusal;
use crate::translate::{ShownBody, transform_response};
use host_client::{HostBody, RequestBody, spacing};
use kube_wire::Verb;
use virtual_cluster::share::large_objects::Size;

/// Carries out an authorised request. `findings` are those of the last decision, also for a refusal.
pub(super) async fn carry_out(
    call: &mut Call<'_>,
    body: &Body,
    commitment: &Commitment,
    findings: &mut Findings,
) -> Result<Response<ShownBody>, Refusal> {
    redefined::wait_until_counted(call).await;
    let received = body.bytes();
    let cost = body_cost(call, &received);
    let _charge = charge(call, cost)?;
    admit_received(call, &received, cost)?;
    check_field_manager(call)?;
    let write_turn = take_write_turn(call).await?;
    let outcome = attempts(call, body, cost.size, commitment, findings).await;
    // Whatever the outcome is, the host has done its work. If the client goes before, the turn is dropped instead.
    write_turn.into_iter().for_each(spacing::Turn::end);
    outcome
}

/// Decides and sends the request, again if necessary.
async fn attempts(
    call: &mut Call<'_>,
    body: &Body,
    size: Size,
    commitment: &Commitment,
    findings: &mut Findings,
) -> Result<Response<ShownBody>, Refusal> {
    written::check_room(call, body.len())?;
    loop {
        call.take_turn(size).await?;
        commitment.begin(call);
        let decision = call.api.cluster.lasting.large_objects.in_turn(call.turn.is_working(), decide(call, body)).await;
        *findings = decision.findings;
        let plan = decision.plan?;
        call.turn.release_parsed();
        match attempt(call, plan, findings, body, commitment).await? {
            ControlFlow::Break(response) => return Ok(response),
            ControlFlow::Continue(cause) => {
                call.turn.end();
                let pause = call.attempts.next(cause);
                if !pause.is_zero() {
                    sleep(pause).await;
                }
            }
        }
    }
}

/// Sends the request of a plan, and transforms the response.
async fn attempt(
    call: &mut Call<'_>,
    mut plan: Box<Plan>,
    findings: &Findings,
    body: &Body,
    commitment: &Commitment,
) -> Result<End<ShownBody>, Refusal> {
    check_sent(call, &plan.request, body.len())?;
    let shared_length = written::shared_length(call, &plan.request);
    let get = call.api.is_bodiless().then(|| head::as_get(&plan.request));
    let response = send_plan(call, &mut plan, commitment).await?;
    if let Some(occupied) = &call.occupied {
        occupied.responded();
    }
    settle_overlay(call, std::mem::take(&mut plan.moved), response.status()).await;
    if let Some(cause) = cause(call, &plan.replan, response.status(), body) {
        return Ok(ControlFlow::Continue(cause));
    }
    if let Some(get) = get.filter(|_| plan.transform.looks_at(response.status())) {
        return Box::pin(head::complete(call, plan, findings, get, response)).await.map(ControlFlow::Break);
    }
    if let Some(length) = shared_length.filter(|_| response.status().is_success()) {
        written::count_bytes(call, length);
    }
    commitment.responded(&call.api);
    let response = match complete(call, &mut plan, response).await? {
        ControlFlow::Break(response) => response,
        ControlFlow::Continue(cause) => return Ok(ControlFlow::Continue(cause)),
    };
    let response = count_refusal(call, findings.warned(response)).await?;
    // The next body gets its turn only after a refusal has been counted.
    call.turn.end();
    let response = overlaid(call, &plan.transform, response);
    let mut view = call.view(plan.mapping, findings);
    if let Some(projected) = plan.projected {
        view = view.with_projected_objects(projected);
    }
    if let Some(selecting) = plan.selecting {
        view = view.with_selector(selecting);
    }
    let not_found = plan.not_found;
    transform_response(&view, plan.transform, || not_found.status(&call.api), response, call.answer_collector())
        .await
        .map(ControlFlow::Break)
}

/// Checks the body that the host would get, after one of `received` bytes. A small patch of a large object becomes a large body.
fn check_sent(call: &Call<'_>, request: &Request<RequestBody>, received: usize) -> Result<(), Refusal> {
    let sent = request.body().bytes();
    admit_sent(call, &sent)?;
    check_managed_fields(call, &sent)?;
    call.hold(sent.len().saturating_sub(received))
}

/// Sends the request of a plan, unless a feed answers it. If the host responds with 404, the other plan takes its place, if there
/// is one.
async fn send_plan(
    call: &mut Call<'_>,
    plan: &mut Plan,
    commitment: &Commitment,
) -> Result<Response<HostBody>, Refusal> {
    if let Some(query) = shareable(call, plan) {
        let planned = plan.request.uri().clone();
        if let Some(response) = Box::pin(shared_watch(call, &planned, query)).await? {
            if let Some(sharing) = &call.services.sharing {
                plan.transform.share(&sharing.mapped_frames);
            }
            call.turn.end();
            return Ok(response);
        }
    }
    if let Some(Ok(query)) = feed_list_query(call, plan) {
        let planned = plan.request.uri().clone();
        if let Some(response) = Box::pin(shared_list(call, &planned, query)).await? {
            call.turn.end();
            return Ok(response);
        }
    }
    if let Some(request) = call.api.info.resource()
        && request.verb() == Verb::Watch
        && !upstream::is_of_caller(&plan.request)
    {
        may_watch_at_host(call, request).await?;
    }
    take_seats(call).await?;
    commitment.begin(call);
    let mut response = send_in_turn(call, plan.take_request()).await?;
    if response.status() == StatusCode::NOT_FOUND
        && let Some(other) = plan.otherwise.take()
    {
        *plan = *other;
        response = send_in_turn(call, plan.take_request()).await?;
    }
    if response.status().is_success() {
        call.turn.end();
    }
    Ok(response)
}

/// Sends a request to the host. Samples of its body are drawn in the turn of this request.
async fn send_in_turn(call: &Call<'_>, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
    let sent = pin!(send(call, request));
    call.api.cluster.lasting.large_objects.in_turn(call.turn.is_working(), sent).await
}

/// Why the request is planned again after this response, if it is.
fn cause(call: &mut Call<'_>, replan: &Replan, status: StatusCode, body: &Body) -> Option<Cause> {
    let is_settling = || call.services.authz.is_settling(&call.api.cluster.name);
    let cause = match status {
        StatusCode::CONFLICT if call.attempts.is_solvable(replan) => Cause::Conflict,
        StatusCode::FORBIDDEN if body.is_whole() && is_settling() => Cause::Settling,
        _ => return None,
    };
    call.attempts.allow(cause).then_some(cause)
}
