//! What all phases after `authenticate` use: the facts about the request, the services of the agent, and what the request
//! has used so far.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use feeds::AtHost;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use request_traces::{Parent, Phase, Span};
use rewrite::{Mapping, View};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::exchange::api_request::ApiRequest;
use crate::exchange::attempts::Attempts;
use crate::exchange::findings::Findings;
use crate::exchange::services::Services;
use crate::exchange::turn::Turn;
use crate::refusal::{Exhausted, Refusal};
use crate::translate::{Collector, warnings};
use host_client::api::Api;
use host_client::{HostBody, HostError, RequestBody};
use virtual_cluster::share::large_objects::Size;
use virtual_cluster::share::seats::Occupied;

/// The time for the host to respond to a request that is not long-running. An API server responds to such a request within
/// [`REQUEST_TIMEOUT`](host_client::REQUEST_TIMEOUT), so this longer time ends only lost requests.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(75);

/// One request, in all phases after `authenticate`.
pub(crate) struct Call<'a> {
    pub(crate) services: &'a Services,
    /// The facts, which no phase after `authorise` changes.
    pub(crate) api: ApiRequest<'a>,
    /// The span of the request. `None` if it is not traced.
    pub(super) trace: Option<Parent>,
    /// What the attempts so far have shown.
    pub(super) attempts: Attempts,
    /// The permits and the memory that the request holds.
    pub(super) turn: Turn,
    /// The weight that has been counted towards the rate limit for this request, in bytes.
    pub(super) counted_weight: AtomicUsize,
    /// The weight of what was read from the host for a write, in bytes.
    pub(super) read_weight: AtomicUsize,
    /// The seats of a response that occupies the host while it streams.
    pub(super) occupied: Option<Occupied>,
    /// Counts the watch at the host, if a feed would serve it with more demand.
    pub(super) at_host: Option<AtHost>,
}

// === impl Call ===

impl<'a> Call<'a> {
    pub(super) fn new(services: &'a Services, api: ApiRequest<'a>) -> Self {
        Self {
            services,
            api,
            trace: None,
            attempts: Attempts::default(),
            turn: Turn::default(),
            counted_weight: AtomicUsize::new(0),
            read_weight: AtomicUsize::new(0),
            occupied: None,
            at_host: None,
        }
    }

    /// A client for the agent's own requests.
    pub(super) fn host_api(&self) -> Api {
        Api::new(self.services.host.clone())
    }

    /// Collects responses that the agent reads before the request takes effect.
    pub(super) fn collector(&self) -> Collector<'_> {
        let lasting = &self.api.cluster.lasting;
        Collector::new(&lasting.memory, &lasting.large_objects, true)
    }

    /// Collects the response to the request itself.
    pub(super) fn answer_collector(&self) -> Collector<'_> {
        let lasting = &self.api.cluster.lasting;
        Collector::new(&lasting.memory, &lasting.large_objects, self.api.is_read())
    }

    /// How the client sees objects of the host.
    pub(super) fn view(&self, mapping: Mapping, findings: &Findings) -> View {
        let view = View::new(findings.named().fold(mapping, Mapping::with_requested_namespace));
        let view =
            view.with_guard(Arc::clone(&self.api.cluster.guard)).with_certificate(self.services.endpoint_ca.borrow());
        let view = if self.api.cluster.pod_security.is_some() { view.enforcing_pod_security() } else { view };
        if self.api.wants_bare_rows() { view.with_bare_rows() } else { view }
    }

    /// The warnings for a refusal of the agent, each once, in virtual names.
    pub(super) fn shown_warnings(&self, findings: &Findings) -> Vec<HeaderValue> {
        let mut response = findings.warned(Response::new(()));
        warnings(&self.view(self.api.mapping.clone(), findings), response.headers_mut());
        response.headers().get_all(header::WARNING).iter().cloned().collect()
    }

    /// Waits until the host may get a body of this size, and holds its permit until [`Turn::end`]. For a large body,
    /// also waits until it may be parsed, and lets the rest of the plan run in its turn. A small body waits for
    /// nothing. Refuses the request if the cluster must wait after refusals, which may have changed in the meantime.
    pub(crate) async fn take_turn(&self, size: Size) -> Result<(), Refusal> {
        let held_size = self.turn.held().at_host.as_ref().map(|(size, _)| *size);
        if size > held_size.unwrap_or(Size::Small) { Box::pin(self.wait_for_turn(size)).await } else { Ok(()) }
    }

    async fn wait_for_turn(&self, size: Size) -> Result<(), Refusal> {
        let limits = &self.api.cluster.lasting.large_objects;
        let permit = limits.at_host(size).await.map_err(|_| Exhausted::LargeObjects)?;
        let parsed = limits.parsed(size).await.map_err(|_| Exhausted::LargeObjects)?;
        // Always true: only a small body needs no permit.
        if let Some(permit) = permit {
            let mut held = self.turn.held();
            (held.at_host, held.parsed) = (Some((size, permit)), parsed);
        }
        self.api.cluster.lasting.write_rate.admit_again().map_err(Exhausted::Weight)?;
        if size == Size::Large {
            self.turn.is_working.store(true, Ordering::Relaxed);
            // [`InTurn`](virtual_cluster::share::large_objects::InTurn) reads the flag when it is polled, so the next
            // poll is in the turn.
            yield_now().await;
        }
        Ok(())
    }

    /// Charges this many bytes to the cluster until [`Turn::end`] or [`Turn::release_memory`].
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        let charge = self.collector().reserve(bytes)?;
        self.turn.held().charges.push(charge);
        Ok(())
    }

    /// Awaits a future outside the turn: other tasks do the work, such as the host that makes a response.
    pub(crate) async fn outside<F: Future>(&self, future: F) -> F::Output {
        if !self.turn.is_working.swap(false, Ordering::Relaxed) {
            return future.await;
        }
        // The next poll is outside the turn.
        yield_now().await;
        let output = future.await;
        self.turn.is_working.store(true, Ordering::Relaxed);
        // The next poll is in the turn.
        yield_now().await;
        output
    }

    /// Sends a request to the host, without samples of its body. Use `host::sample::send` for a body that a client has
    /// written. Other clusters may parse large objects until the host responds.
    pub(crate) async fn send_unsampled(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<HostBody>, HostError> {
        let mut span = self.host_span(request.headers_mut());
        let sent = async {
            let is_parsing = self.turn.held().parsed.take().is_some();
            let response = self.in_time(self.services.host.send(request)).await;
            if is_parsing {
                let permit = self.api.cluster.lasting.large_objects.parsed_again().await;
                self.turn.held().parsed = permit;
            }
            response
        };
        // Pinned here, because each function would hold its state twice.
        let response = self.outside(pin!(sent)).await;
        if let Some(span) = &mut span {
            span.ended(response.as_ref().ok().map(Response::status), "host");
        }
        let response = response?;
        response.body().set_owner(self.api.cluster.lasting.owner);
        Ok(response)
    }

    /// Begins the span of a request to the host, whose own spans are then below it.
    pub(super) fn host_span(&self, headers: &mut HeaderMap) -> Option<Box<Span>> {
        let span = self.trace.as_ref()?.phase(Phase::Host)?;
        span.write(headers);
        Some(span)
    }

    /// Ends a request that waits for the host, unless it may last.
    async fn in_time<T>(&self, sent: impl Future<Output = Result<T, HostError>>) -> Result<T, HostError> {
        if self.api.info.is_long_running() {
            return sent.await;
        }
        timeout(RESPONSE_TIMEOUT, sent).await.unwrap_or(Err(HostError::Silent(RESPONSE_TIMEOUT)))
    }
}
