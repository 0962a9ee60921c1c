//! The path of one API request through the agent.
//!
//! ```text
//! limits -> authenticate -> authorise -> body -> seats -> decide -> send -> transform -> record
//!                                                           ^         |
//!                                                           +- Cause -+
//! ```
//!
//! Each phase takes a value and returns a value of its own type for the next one:
//!
//! | phase | module | takes | returns |
//! |---|---|---|---|
//! | limits | `cost`, `services` | the head of the request | a charge |
//! | authenticate | `authenticate` | the head | [`Authenticated`](authorise::Authenticated) |
//! | authorise | `authorise` | `Authenticated` | [`Call`](call::Call), which has the [`ApiRequest`](api_request::ApiRequest) |
//! | body | `body` | the stream of the client | [`Body`] |
//! | seats | `cost` | the kind of response | permits at the host |
//! | decide | `decide`, with one module for each class of resources in `classes` | `ApiRequest`, `Body` | [`Plan`](plan::Plan) |
//! | send | `carry_out` | `Plan` | the host's response, or the [`Cause`](attempts::Cause) to decide again |
//! | transform | `complete`, [`translate`](crate::translate) | the host's response | the client's response |
//! | record | `log_metadata` | the response | its head, with what the access log needs |
//!
//! The body is not read before the caller is authorised. To decide about a write, the agent may send reads and dry runs
//! to the host (`host`, `write`). The host never sees a virtual name, and `rewrite` never sees HTTP.

mod advertised;
mod api_request;
mod attempts;
mod authenticate;
mod authorise;
mod body;
mod call;
mod carry_out;
mod classes;
mod complete;
mod cost;
mod custom;
mod decide;
pub mod explain;
mod head;
mod host;
mod kinds;
mod log_metadata;
mod plan;
mod ports;
mod query;
mod refusals;
mod rights;
mod services;
mod synced;
mod turn;
mod upgrade;
mod upstream;
mod write;

use std::future::poll_fn;
use std::sync::Arc;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_body;
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body as _;
use kube_wire::{RequestInfo, Status};
use protocol::ClusterName;
use tracing::debug;

use crate::refusal::{Exhausted, Refusal};
use crate::translate::ShownBody;
use virtual_cluster::clusters::VirtualCluster;
use virtual_cluster::share::seats::Seated;

use authenticate::authenticate;
use body::Body;
use carry_out::carry_out;
use log_metadata::LogMetadata;
pub(crate) use services::Services;

/// Serves API requests. Cheap to clone.
#[derive(Clone)]
pub struct Exchange {
    services: Arc<Services>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

// === impl Exchange ===

impl Exchange {
    /// An exchange that uses these services.
    pub(crate) fn new(services: Services) -> Self {
        Self { services: Arc::new(services) }
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
        let mut log_metadata = LogMetadata::default();
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &log_metadata, accept.as_ref(), bodiless, respond);
        };
        let exchanged = tokio::select! {
            exchanged = self.exchange(&cluster, request, &mut log_metadata, &mut respond) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
        };
        match exchanged {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                log_metadata.write(&mut parts.headers);
                let (bodiless, overdue) = (body.is_end_stream(), body.overdue());
                let stream = respond.send_response(Response::from_parts(parts, ()), bodiless)?;
                if bodiless {
                    return Ok(());
                }
                tokio::select! {
                    sent = send_body(body, stream) => if let Err(error) = sent {
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
                refuse(refusal, &log_metadata, accept.as_ref(), bodiless, respond)
            }
        }
    }

    /// Serves one stream that switches protocols.
    pub(crate) async fn serve_upgrade(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let accept = request.headers().get(header::ACCEPT).cloned();
        let mut log_metadata = LogMetadata::default();
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &log_metadata, accept.as_ref(), false, respond);
        };
        let exchanged = tokio::select! {
            exchanged = upgrade::exchange(&self.services, &cluster, request, &mut log_metadata) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
        };
        match exchanged {
            Ok(switched) => tokio::select! {
                carried = switched.carry(respond, &log_metadata) => carried,
                () = cluster.lasting.end.cancelled() => Ok(()),
            },
            Err(refusal) => refuse(refusal, &log_metadata, accept.as_ref(), false, respond),
        }
    }

    async fn exchange(
        &self,
        cluster: &Arc<VirtualCluster>,
        request: Request<Inbound>,
        log_metadata: &mut LogMetadata,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<Response<Seated<ShownBody>>, Refusal> {
        let (head, body) = request.into_parts();
        let _charge = cost::charge_head(cluster, &head)?;
        self.services.admit(cluster).await?;
        let query = head.uri.query();
        let info = RequestInfo::parse(&head.method, head.uri.path(), query).map_err(|error| Refusal::from(&error))?;
        let authenticated = authenticate(&self.services, cluster, info, head.headers).await?;
        log_metadata.identified(authenticated.caller());
        let mut call = authenticated.authorise().await?;
        let body = Body::receive(body, call.api.body_use(), &cluster.lasting.memory.bodies).await?;
        let occupied = match cost::load_of(&call.api) {
            Some(load) => tokio::select! {
                occupied = cluster.lasting.seats.take(load) => Some(occupied.ok_or(Exhausted::Seats)?),
                // The client has reset the request, so it does not get this refusal. Nothing has been sent to the host.
                _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Exhausted::Seats.into()),
            },
            None => None,
        };
        let response = carry_out(&mut call, &body).await.inspect_err(|_| log_metadata.warned(call.shown_warnings()))?;
        Ok(response.map(|body| match body.patience() {
            // The host has sent all of it, so it occupies no seats.
            Some(patience) => Seated::in_memory(body, patience),
            None => Seated::new(body, occupied),
        }))
    }
}

/// The cluster is not in this agent's configuration: the proxy-server learns of changes a moment later.
fn not_served(cluster: &str) -> Refusal {
    let message = format!("this agent does not serve cluster {cluster}");
    Status::service_unavailable(message).with_retry_after(1).into()
}

fn refuse(
    refusal: Refusal,
    log_metadata: &LogMetadata,
    accept: Option<&HeaderValue>,
    bodiless: bool,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let fault = refusal.fault();
    let (mut response, body) = refusal.into_response(accept);
    log_metadata.write_refusal(response.headers_mut(), fault);
    let mut stream = respond.send_response(response, bodiless)?;
    if bodiless { Ok(()) } else { stream.send_data(body, true) }
}
