//! The path of one API request through the agent.
//!
//! ```text
//! limits -> identify -> authorise -> receive_body -> take_seats -> decide -> send -> transform -> record
//!                                                                    ^         |
//!                                                                    +- Cause -+
//! ```
//!
//! `stack` composes the phases, and says why they are in this order. Each phase takes a value and returns a value of its
//! own type for the next one:
//!
//! | phase | module | what it adds | it may |
//! |---|---|---|---|
//! | limits | `cost`, `services` | a charge for the head, a place among the requests in flight | wait until the agent knows the host |
//! | identify | `authenticate` | the caller: `Authenticated` | send a TokenReview |
//! | authorise | `authorise` | the right: `Call`, with the facts as `ApiRequest` | send reviews |
//! | receive_body | `body` | the `Body` | keep up to 3 MiB |
//! | take_seats | `cost` | permits for the response | wait for other responses |
//! | decide | `decide`, and a module for each class of resources in `classes` | the `Decision`: a `Plan`, and `Findings` for the response | for a write: read from the host, and send dry runs |
//! | send | `carry_out` | the host's response, or the `Cause` to decide again | send the request |
//! | transform | `complete`, `translate` | the client's response | hold one item of a list |
//! | record | this module, `record` | what the metrics and the access log need | |
//!
//! If the client resets the request, the path ends where it is, unless the request is committed (`commitment`).
//!
//! The host never sees a virtual name, and `rewrite` never sees HTTP. A request that switches protocols (`upgrade`) passes
//! through `limits`, `identify` and `authorise`, too. It has no body, and takes no seats.

mod advertised;
mod api_request;
mod attempts;
mod audit;
mod authenticate;
mod authorise;
mod body;
mod call;
mod carry_out;
mod classes;
mod commitment;
mod complete;
mod cost;
mod custom;
mod decide;
pub mod explain;
mod findings;
mod head;
mod host;
mod incoming;
mod kinds;
mod peeked;
mod phase;
mod plan;
mod ports;
mod prefetch;
mod query;
mod record;
mod refusals;
mod restored;
mod rights;
mod services;
mod shared_list;
mod shared_watch;
mod sharing;
mod stack;
mod synced;
mod turn;
mod undecided;
mod upgrade;
mod upstream;
mod watch_end;
mod watch_right;
mod write;
mod written;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::encoded::Encoded;
use ::tunnel::outbound::{SendError, send_body};
use ::tunnel::{Inbound, Link, Outbound};
use bytes::Bytes;
use h2::server::SendResponse;
use host_client::REQUEST_TIMEOUT;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request};
use http_body::Body;
use kube_wire::Status;
use kube_wire::watch_frames::WatchFrames;
use protocol::blocks::Histories;
use protocol::digest::{Digest, MAX_HELD};
use protocol::encoding::{accepts_blocks, accepts_primed, accepts_short_id};
use protocol::stream::restore_authorization;
use protocol::{ClusterName, Encoding, audit_id};
use request_metrics::{Failure, RequestMetrics, VerbClass};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::refusal::{self, Refusal};
use virtual_cluster::clusters::VirtualCluster;

use commitment::Commitment;
use incoming::Incoming;
use peeked::Peeked;
use prefetch::Prefetching;
use record::Record;
pub(crate) use services::Services;
#[cfg(test)]
pub(crate) use sharing::Answer;
pub(crate) use sharing::Sharing;
use stack::{ExchangeResponse, Passing};
use upgrade::Handshake;
use watch_end::EndingWatch;

/// Shorter bodies, in bytes, are not compressed: they would become hardly shorter.
const MIN_ENCODED: u64 = 256;

/// Serves API requests. Cheap to clone.
#[derive(Clone)]
pub struct Exchange {
    services: Arc<Services>,
    requests: Arc<RequestMetrics>,
}

/// What requests need to know about the tunnel on which they arrive.
#[derive(Debug)]
pub(crate) struct ServedTunnel {
    /// The network to the proxy-server.
    pub(crate) link: Arc<Link>,
    /// Cancelled shortly before the tunnel stops accepting streams. It ends the stream of offers.
    pub(crate) closing: CancellationToken,
    /// Cancelled when streams that do not end by themselves must end.
    pub(crate) draining: CancellationToken,
    /// How long streams have then.
    pub(crate) drain: Duration,
}

/// A stream of the tunnel that is served.
struct Stream {
    respond: SendResponse<Bytes>,
    record: Record,
    /// The `Accept` header of the request.
    accept: Option<HeaderValue>,
    /// Whether it is a HEAD request, so that no response has a body.
    is_head: bool,
    /// The network to the proxy-server, if the proxy-server accepts blocks.
    blocks_link: Option<Arc<Link>>,
    /// Whether the proxy-server accepts primed blocks.
    accepts_primed: bool,
    /// Whether the proxy-server accepts short IDs.
    accepts_short_id: bool,
    /// The digest of the body that the proxy-server has.
    held: Option<Digest>,
    /// The positions of the documents that are unchanged.
    unchanged: Option<Vec<usize>>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

// === impl Exchange ===

impl Exchange {
    /// An exchange that uses these services.
    pub(crate) fn new(services: Services, requests: Arc<RequestMetrics>) -> Self {
        Self { services: Arc::new(services), requests }
    }

    /// Serves one stream of the tunnel.
    pub(crate) async fn serve(
        &self,
        name: &ClusterName,
        request: Request<Inbound>,
        respond: SendResponse<Bytes>,
        tunnel: &ServedTunnel,
    ) -> Result<(), h2::Error> {
        let mut stream = self.stream(name, &request, respond);
        stream.blocks_link = accepts_blocks(request.headers()).then(|| Arc::clone(&tunnel.link));
        let (mut head, body) = request.into_parts();
        stream.record.traced(&self.services.traces, name, &mut head);
        let Some(cluster) = self.services.clusters.get(name) else {
            return stream.refuse(not_served(name.as_str()));
        };
        restore_authorization(&mut head.headers);
        stream.held = Digest::take(&mut head.headers);
        let prefetching = Prefetching::take(&mut head);
        match self.exchange(&cluster, head, body, &mut stream, stack::serve).await {
            Some(Ok(exchanged)) => {
                if let Some(prefetching) = prefetching.and_then(|it| it.checked(&exchanged.response)) {
                    let unchanged = prefetching.unchanged(&self.services, &self.requests, (name, &cluster));
                    tokio::select! {
                        unchanged = unchanged => stream.unchanged = Some(unchanged),
                        () = cluster.lasting.end.cancelled() => return stream.refuse(not_served(name.as_str())),
                        reset = poll_fn(|cx| stream.respond.poll_reset(cx)) => return reset.map(drop),
                    }
                }
                stream.send(exchanged, &cluster, tunnel).await
            }
            Some(Err(refusal)) => stream.refuse(refusal),
            None => Ok(()),
        }
    }

    /// Serves one stream that switches protocols.
    pub(crate) async fn serve_upgrade(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let mut stream = self.stream(cluster, &request, respond);
        let (mut head, body) = request.into_parts();
        stream.record.traced(&self.services.traces, cluster, &mut head);
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return stream.refuse(not_served(cluster.as_str()));
        };
        restore_authorization(&mut head.headers);
        let handshake = match Handshake::read(&head) {
            Ok((method, handshake)) => {
                head.method = method;
                handshake
            }
            Err(refusal) => return stream.refuse(refusal),
        };
        let exchanged =
            self.exchange(&cluster, head, body, &mut stream, |incoming| stack::serve_upgrade(incoming, handshake));
        match exchanged.await {
            Some(Ok(switched)) => tokio::select! {
                carried = switched.carry(stream.respond, &cluster.lasting.send_queue, &mut stream.record) => carried,
                () = cluster.lasting.end.cancelled() => Ok(()),
            },
            Some(Err(refusal)) => stream.refuse(refusal),
            None => Ok(()),
        }
    }

    fn stream(&self, cluster: &ClusterName, request: &Request<Inbound>, respond: SendResponse<Bytes>) -> Stream {
        Stream {
            respond,
            record: Record::new(self.requests.measure(cluster, VerbClass::Other, Instant::now()), request.headers()),
            accept: request.headers().get(header::ACCEPT).cloned(),
            is_head: request.method() == Method::HEAD,
            blocks_link: None,
            accepts_primed: accepts_primed(request.headers()),
            accepts_short_id: accepts_short_id(request.headers()),
            held: None,
            unchanged: None,
        }
    }

    /// Passes a request through a stack. `None` if the client has reset it.
    async fn exchange<R>(
        &self,
        cluster: &Arc<VirtualCluster>,
        head: request::Parts,
        body: Inbound,
        stream: &mut Stream,
        stack: impl for<'a> FnOnce(Incoming<'a>) -> Passing<'a, R>,
    ) -> Option<Result<R, Refusal>> {
        body.set_owner(cluster.lasting.owner);
        let commitment = Commitment::default();
        let incoming = Incoming {
            services: &self.services,
            cluster,
            method: &head.method,
            uri: &head.uri,
            is_upgrade: head.extensions.get::<h2::ext::Protocol>().is_some(),
            headers: head.headers,
            body,
            commitment: &commitment,
            record: &mut stream.record,
        };
        tokio::select! {
            biased;
            exchanged = stack(incoming) => Some(exchanged),
            () = cluster.lasting.end.cancelled() => Some(Err(not_served(cluster.name.as_str()))),
            () = commitment.reset(&mut stream.respond) => None,
        }
    }
}

// === impl Stream ===

impl Stream {
    /// Sends the response to the client.
    async fn send(
        mut self,
        exchanged: ExchangeResponse,
        cluster: &VirtualCluster,
        tunnel: &ServedTunnel,
    ) -> Result<(), h2::Error> {
        let ExchangeResponse { response, is_watch, is_compressible, counted: _counted } = exchanged;
        let frames = if is_watch { WatchFrames::of(&response) } else { None };
        let (mut parts, body) = response.into_parts();
        self.record.write(parts.status, &mut parts.headers);
        let compression = self.blocks_link.as_ref().and_then(|link| link.compression());
        if self.accepts_short_id && compression.is_some() {
            audit_id::shorten(&mut parts.headers);
        }
        if let Some(unchanged) = &self.unchanged {
            protocol::prefetch::write_unchanged(unchanged, &mut parts.headers);
        }
        if is_compressible {
            // It differs every second, so it would cross the tunnel with each response. The proxy-server adds its own (RFC 9110,
            // section 6.6.1). That of a server in a pod is a part of what the pod says.
            parts.headers.remove(header::DATE);
        }
        let (bodiless, overdue) = (body.is_end_stream(), body.overdue());
        let histories =
            compression.filter(|_| is_compressible && !self.is_head && is_worthwhile(&parts.headers, &body));
        let held = self.held.filter(|_| histories.is_some() && parts.status == StatusCode::OK);
        let mut body = Peeked::new(body);
        let is_held = match held {
            Some(held) => tokio::select! {
                digest = body.digest(MAX_HELD, cluster.lasting.memory.bodies.nothing()) => digest == Some(held),
                () = cluster.lasting.end.cancelled() => return Ok(()),
                reset = poll_fn(|cx| self.respond.poll_reset(cx)) => return reset.map(drop),
            },
            None => false,
        };
        let encoding = match (is_held, histories) {
            (true, _) => Encoding::Held,
            (false, Some(_)) if is_watch && self.accepts_primed => Encoding::Primed,
            (false, Some(_)) => Encoding::Blocks,
            (false, None) => Encoding::Identity,
        };
        encoding.write(&mut parts.headers);
        let histories = histories.map(|it| if encoding == Encoding::Primed { it.primed() } else { it.clone() });
        let bodiless = bodiless || is_held;
        let stream = self.respond.send_response(Response::from_parts(parts, ()), bodiless)?;
        if bodiless {
            return Ok(());
        }
        let outbound = Outbound::charged(stream, cluster.lasting.send_queue.clone());
        let is_read = body.is_read();
        let body = match frames {
            Some(frames) => EndingWatch::watch(body, frames, tunnel.draining.clone(), tunnel.drain),
            None => EndingWatch::other(body),
        };
        tokio::select! {
            biased;
            sent = send(body, histories.as_ref(), outbound) => if let Err(error) = sent {
                debug!(error = &error as &dyn std::error::Error, "response ended early");
            },
            // Dropping the stream resets it, so that the client does not take the body for complete.
            () = cluster.lasting.end.cancelled() => debug!("response ended because the cluster was removed"),
            () = overdue => debug!("client did not read the response in time"),
            () = sleep(REQUEST_TIMEOUT), if is_read => debug!("client did not read the document in time"),
        }
        Ok(())
    }

    /// Sends a refusal of the agent to the client.
    fn refuse(mut self, refusal: Refusal) -> Result<(), h2::Error> {
        debug!(%refusal, "refused");
        let (fault, operator_message) = (refusal.fault(), refusal.operator_message());
        let status = refusal.into_status();
        let message = operator_message.unwrap_or(&status.message);
        self.record.failed(&Failure { code: status.code, fault, reason: status.reason.as_str(), message });
        self.record.refused(&status);
        let (mut response, body) = refusal::response(&status, self.accept.as_ref());
        self.record.write_refusal(response.status(), response.headers_mut(), fault);
        let mut stream = self.respond.send_response(response, self.is_head)?;
        if self.is_head { Ok(()) } else { stream.send_data(body, true) }
    }
}

/// Whether a body becomes much shorter as blocks.
fn is_worthwhile(headers: &HeaderMap, body: &impl Body) -> bool {
    let is_long = body.size_hint().exact().is_none_or(|length| length >= MIN_ENCODED);
    is_long && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Sends a body, as blocks if it may keep a history.
async fn send<B>(body: B, histories: Option<&Histories>, outbound: Outbound) -> Result<u64, SendError<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    match histories {
        Some(histories) => send_body(Encoded::new(body, histories), outbound).await,
        None => send_body(body, outbound).await,
    }
}

/// The cluster is not in this agent's configuration: the proxy-server learns of changes a moment later.
fn not_served(cluster: &str) -> Refusal {
    let message = format!("this agent does not serve cluster {cluster}");
    Status::service_unavailable(message).with_retry_after(1).into()
}
