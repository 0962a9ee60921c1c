//! Serves the streams that the proxy-server opens on one tunnel.
//!
//! A tunnel is on one [worker](ops::workers), and so are the streams of which every step is short. Others run on the main
//! runtime, whose threads may block (`placement`). While the tasks of the worker wait for too long, all new streams run on
//! the main runtime, so that the requests of one virtual cluster do not delay those of the others.

mod placement;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::{Budget, Compression, Inbound, Link};
use bytes::Bytes;
use dial::offers::{self, Current};
use dial::routes::Verdicts;
use dial::{Stop, streams};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Method, Request, header};
use kube_wire::Status;
use kube_wire::status::Reason;
use ops::drain::Tasks;
use ops::workers::{self, QueuedAt};
use protocol::stream::StreamKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span};

use crate::exchange::{Exchange, ServedTunnel};
use crate::layer4::Layer4;
use crate::refusal::Refusal;
use placement::Placement;

/// Serves the streams of tunnels, each according to its kind.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Serves byte streams to physical clusters and allowed destinations.
    pub layer4: Arc<Layer4>,
    /// Serves API requests to virtual clusters. `None` if the configuration has no host.
    pub exchange: Option<Exchange>,
    /// The clusters that the agent serves.
    pub offers: Current,
    /// Limits the unread request bytes of the streams of all tunnels.
    pub unread: Arc<Budget>,
    /// When bodies are compressed.
    pub compression: Compression,
    /// How long streams have to end when the process stops.
    pub drain: Duration,
    /// The tasks of streams.
    pub tasks: Tasks,
    /// The runtime for requests that may take long.
    pub main: Handle,
}

/// The state that the streams of one tunnel share.
#[derive(Debug)]
struct Shared {
    streams: Streams,
    verdicts: Verdicts,
    tunnel: ServedTunnel,
}

// === impl Streams ===

impl Streams {
    /// Serves one tunnel until it ends, and returns the reason. When `stop` requests it, the tunnel accepts no more streams,
    /// and ends with its last one. `verdicts` gets those of the proxy-server about the offers.
    pub async fn serve<S>(self, io: S, stop: &Stop, verdicts: Verdicts) -> Result<String, h2::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let link = Arc::new(Link::new(self.compression));
        let (closing, draining) = (CancellationToken::new(), CancellationToken::new());
        let context = ServedTunnel {
            link: Arc::clone(&link),
            closing: closing.clone(),
            draining: draining.clone(),
            drain: self.drain,
        };
        let tasks = self.tasks.clone();
        let (main, here) = (self.main.clone(), Handle::current());
        let shared = Arc::new(Shared { streams: self, verdicts, tunnel: context });
        let serve = |request: Request<RecvStream>, respond: SendResponse<Bytes>| {
            let span = debug_span!("stream", id = respond.stream_id().as_u32());
            let (placement, queued) = (Placement::of(&request, workers::is_late()), QueuedAt::now());
            let stream = Arc::clone(&shared).stream(request, respond, queued);
            let runtime = if placement == Placement::Worker { &here } else { &main };
            tasks.spawn_on(runtime, "stream", Box::pin(stream.instrument(span)));
            if placement == Placement::LateWorker {
                // An empty task measures the delay of the worker, which ends this state.
                tasks.spawn_on(&here, "delay", async move { queued.begun() });
            }
        };
        let measured = |round_trip| link.measured(round_trip);
        let stopping = async {
            tokio::select! {
                () = tasks.cancelled() => {}
                () = stop.requested() => {}
            }
        };
        let accepting = pin!(streams::accept(io, stopping, || closing.cancel(), measured, serve));
        drain_streams(accepting, &draining, ends_streams(&tasks, stop)).await
    }
}

/// Refuses a stream that the agent does not serve.
fn refuse(request: &Request<Inbound>, why: String, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    debug!(why, "stream refused");
    let refusal = Refusal::from(Status::failure(404, Reason::NotFound, why));
    let fault = refusal.fault();
    let (mut response, body) = refusal.into_response(request.headers().get(header::ACCEPT));
    fault.write(response.headers_mut());
    let is_head = request.method() == Method::HEAD;
    let mut stream = respond.send_response(response, is_head)?;
    if is_head { Ok(()) } else { stream.send_data(body, true) }
}

/// Completes when the process stops, or when this tunnel must end.
async fn ends_streams(tasks: &Tasks, stop: &Stop) {
    tokio::select! {
        () = tasks.cancelled() => {}
        () = stop.ends_streams() => {}
    }
}

/// Drives a tunnel to its end, and cancels `draining` as soon as `ends` completes.
async fn drain_streams<T>(
    mut tunnel: Pin<&mut impl Future<Output = T>>,
    draining: &CancellationToken,
    ends: impl Future<Output = ()>,
) -> T {
    tokio::select! {
        ended = &mut tunnel => return ended,
        () = ends => draining.cancel(),
    }
    tunnel.await
}

// === impl Shared ===

impl Shared {
    /// Serves a stream. The future of each kind is boxed, because that of a request has several kilobytes.
    async fn stream(self: Arc<Self>, request: Request<RecvStream>, respond: SendResponse<Bytes>, queued: QueuedAt) {
        queued.begun();
        let Self { streams: Streams { layer4, exchange, offers, unread, .. }, verdicts, tunnel } = &*self;
        let extended = request.extensions().get::<h2::ext::Protocol>().is_some();
        let kind = StreamKind::of(request.method(), extended, request.headers());
        let request = request.map(|body| Inbound::new(body, unread));
        let result = match (kind, exchange) {
            (Ok(StreamKind::Api(cluster)), Some(exchange)) => {
                Box::pin(exchange.serve(&cluster, request, respond, tunnel)).await
            }
            (Ok(StreamKind::Upgrade(cluster)), Some(exchange)) => {
                Box::pin(exchange.serve_upgrade(&cluster, request, respond)).await
            }
            (Ok(StreamKind::Physical(cluster)), _) => Box::pin(layer4.physical(&cluster, request, respond)).await,
            (Ok(StreamKind::Destination(cluster, address)), _) => {
                Box::pin(layer4.destination(&cluster, &address, request, respond)).await
            }
            (Ok(StreamKind::Offers), _) => {
                offers::tell(offers.clone(), request.into_body(), respond, verdicts, tunnel.closing.clone()).await
            }
            // A proxy-server opens no such streams, because the agent has not offered the cluster.
            (Ok(StreamKind::Api(cluster) | StreamKind::Upgrade(cluster)), None) => {
                refuse(&request, format!("this agent does not serve cluster {cluster}"), respond)
            }
            (Err(unknown), _) => refuse(&request, unknown.to_string(), respond),
        };
        if let Err(error) = result {
            debug!(%error, "stream ended early");
        }
    }
}
