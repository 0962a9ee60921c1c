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
mod phase;
mod plan;
mod ports;
mod query;
mod record;
mod refusals;
mod rights;
mod services;
mod stack;
mod synced;
mod turn;
mod undecided;
mod upgrade;
mod upstream;
mod write;

use std::sync::Arc;

use ::tunnel::outbound::send_body;
use ::tunnel::{Inbound, Outbound};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body as _;
use kube_wire::Status;
use protocol::ClusterName;
use request_metrics::{RequestMetrics, VerbClass};
use tokio::time::Instant;
use tracing::debug;

use crate::refusal::Refusal;

use commitment::Commitment;
use incoming::Incoming;
use record::Record;
pub(crate) use services::Services;
use stack::ExchangeResponse;
use upgrade::Handshake;

/// Serves API requests. Cheap to clone.
#[derive(Clone)]
pub struct Exchange {
    services: Arc<Services>,
    requests: Arc<RequestMetrics>,
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
        cluster: &ClusterName,
        request: Request<Inbound>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let accept = request.headers().get(header::ACCEPT).cloned();
        let bodiless = request.method() == Method::HEAD;
        let mut record = Record::new(self.requests.measure(cluster, VerbClass::Other, Instant::now()));
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &mut record, accept.as_ref(), bodiless, respond);
        };
        request.body().set_owner(cluster.lasting.owner);
        let (head, body) = request.into_parts();
        let commitment = Commitment::default();
        let incoming = Incoming {
            services: &self.services,
            cluster: &cluster,
            method: &head.method,
            uri: &head.uri,
            headers: head.headers,
            body,
            is_upgrade: false,
            commitment: &commitment,
            record: &mut record,
        };
        let exchanged = tokio::select! {
            biased;
            exchanged = stack::serve(incoming) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
            () = commitment.reset(&mut respond) => return Ok(()),
        };
        match exchanged {
            Ok(ExchangeResponse { response, in_flight: _in_flight }) => {
                let (mut parts, body) = response.into_parts();
                record.write(parts.status, &mut parts.headers);
                let (bodiless, overdue) = (body.is_end_stream(), body.overdue());
                let stream = respond.send_response(Response::from_parts(parts, ()), bodiless)?;
                if bodiless {
                    return Ok(());
                }
                let outbound = Outbound::charged(stream, cluster.lasting.send_queue.clone());
                tokio::select! {
                    biased;
                    sent = send_body(body, outbound) => if let Err(error) = sent {
                        debug!(error = &error as &dyn std::error::Error, "response ended early");
                    },
                    // Dropping the stream resets it, so that the client does not take the body for complete.
                    () = cluster.lasting.end.cancelled() => debug!("response ended because the cluster was removed"),
                    () = overdue => debug!("client did not read the response in time"),
                }
                Ok(())
            }
            Err(refusal) => {
                debug!(%refusal, "refused");
                refuse(refusal, &mut record, accept.as_ref(), bodiless, respond)
            }
        }
    }

    /// Serves one stream that switches protocols.
    pub(crate) async fn serve_upgrade(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let accept = request.headers().get(header::ACCEPT).cloned();
        let mut record = Record::new(self.requests.measure(cluster, VerbClass::Other, Instant::now()));
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &mut record, accept.as_ref(), false, respond);
        };
        let (head, body) = request.into_parts();
        body.set_owner(cluster.lasting.owner);
        let (method, handshake) = match Handshake::read(&head) {
            Ok(read) => read,
            Err(refusal) => return refuse(refusal, &mut record, accept.as_ref(), false, respond),
        };
        let commitment = Commitment::default();
        let incoming = Incoming {
            services: &self.services,
            cluster: &cluster,
            method: &method,
            uri: &head.uri,
            headers: head.headers,
            body,
            is_upgrade: true,
            commitment: &commitment,
            record: &mut record,
        };
        let exchanged = tokio::select! {
            exchanged = stack::serve_upgrade(incoming, handshake) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
            () = commitment.reset(&mut respond) => return Ok(()),
        };
        match exchanged {
            Ok(switched) => tokio::select! {
                carried = switched.carry(respond, &cluster.lasting.send_queue, &mut record) => carried,
                () = cluster.lasting.end.cancelled() => Ok(()),
            },
            Err(refusal) => refuse(refusal, &mut record, accept.as_ref(), false, respond),
        }
    }
}

/// The cluster is not in this agent's configuration: the proxy-server learns of changes a moment later.
fn not_served(cluster: &str) -> Refusal {
    let message = format!("this agent does not serve cluster {cluster}");
    Status::service_unavailable(message).with_retry_after(1).into()
}

fn refuse(
    refusal: Refusal,
    record: &mut Record,
    accept: Option<&HeaderValue>,
    bodiless: bool,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let fault = refusal.fault();
    let (mut response, body) = refusal.into_response(accept);
    record.write_refusal(response.status(), response.headers_mut(), fault);
    let mut stream = respond.send_response(response, bodiless)?;
    if bodiless { Ok(()) } else { stream.send_data(body, true) }
}
