//! Serves the streams that the proxy-server opens on one tunnel.
//!
//! A tunnel is on one [worker](ops::workers), and so are the streams of which every step is short. Others run on the main
//! runtime, whose threads may block (`place`). If the worker is late, all new streams run there, so that the requests of one
//! virtual cluster do not delay those of the others.

mod place;

use std::future::poll_fn;
use std::sync::Arc;

use ::tunnel::{Batched, Budget, Inbound};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use ops::drain::Tasks;
use ops::workers::{self, QueuedAt};
use protocol::stream::StreamKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span};

use crate::exchange::Exchange;
use crate::layer4::Layer4;
use crate::offers::{self, Current};
use place::Place;

/// Everything that a stream may ask for.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Bytes to physical clusters and allowed destinations.
    pub layer4: Arc<Layer4>,
    /// API requests to virtual clusters; absent where there is no host.
    pub exchange: Option<Exchange>,
    /// What is served.
    pub offers: Current,
    /// Limits the request bytes that the streams of all tunnels leave unread.
    pub unread: Arc<Budget>,
    /// Where streams live.
    pub tasks: Tasks,
    /// The runtime for requests that may take long.
    pub main: Handle,
}

/// What the streams of one tunnel share.
#[derive(Debug)]
struct Shared {
    streams: Streams,
    /// For streams that have no end of their own.
    ending: CancellationToken,
}

// === impl Streams ===

impl Streams {
    /// Serves one tunnel to its end; returns why it ended.
    pub async fn serve<S>(self, io: S, stop: &CancellationToken) -> Result<String, h2::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (io, turns) = Batched::new(io);
        let mut connection = tunnel::settings::server().handshake(io).await?;
        let pings = connection.ping_pong().expect("nobody took it before");
        let mut lost = std::pin::pin!(tunnel::keepalive::keepalive(pings, |_| ()));
        let mut stopping = false;
        let here = Handle::current();
        let shared = Arc::new(Shared { streams: self, ending: CancellationToken::new() });
        let Shared { streams: Self { main, tasks, .. }, ending } = &*shared;
        loop {
            tokio::select! {
                accepted = poll_fn(|cx| turns.poll(cx, |cx| connection.poll_accept(cx))) => match accepted {
                    // Never awaited here: the loop drives the connection for everybody.
                    Some(Ok((request, respond))) => {
                        let span = debug_span!("stream", id = respond.stream_id().as_u32());
                        let (place, given) = (Place::of(&request, workers::is_late()), QueuedAt::now());
                        let stream = Arc::clone(&shared).stream(request, respond, given);
                        let runtime = if place == Place::Worker { &here } else { main };
                        tasks.spawn_on(runtime, "stream", Box::pin(stream.instrument(span)));
                        if place == Place::Relieved {
                            // An empty task shows when the worker is in time again.
                            tasks.spawn_on(&here, "delay", async move { given.begun() });
                        }
                    }
                    Some(Err(err)) => return Ok(err.to_string()),
                    None if stopping => return Ok("drained".into()),
                    None => return Ok("the proxy-server closed it".into()),
                },
                lost = &mut lost => return Ok(lost.to_string()),
                () = tasks.cancelled(), if !stopping => {
                    stopping = true;
                    ending.cancel();
                    connection.graceful_shutdown();
                }
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    ending.cancel();
                    connection.graceful_shutdown();
                }
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    /// What each kind of stream does is boxed, because the state of a request is kilobytes.
    async fn stream(self: Arc<Self>, request: Request<RecvStream>, mut respond: SendResponse<Bytes>, given: QueuedAt) {
        given.begun();
        let Self { streams: Streams { layer4, exchange, offers, unread, .. }, ending } = &*self;
        let extended = request.extensions().get::<h2::ext::Protocol>().is_some();
        let kind = StreamKind::of(request.method(), extended, request.headers());
        let request = request.map(|body| Inbound::new(body, unread));
        let result = match (kind, exchange) {
            (Ok(StreamKind::Api(cluster)), Some(exchange)) => {
                Box::pin(exchange.serve(&cluster, request, respond)).await
            }
            (Ok(StreamKind::Upgrade(cluster)), Some(exchange)) => {
                Box::pin(exchange.serve_upgrade(&cluster, request, respond)).await
            }
            (Ok(StreamKind::Physical(cluster)), _) => Box::pin(layer4.physical(&cluster, request, respond)).await,
            (Ok(StreamKind::Destination), _) => Box::pin(layer4.destination(request, respond)).await,
            (Ok(StreamKind::Offers), _) => {
                offers::tell(offers.clone(), request.into_body(), respond, ending.clone()).await
            }
            (Ok(StreamKind::Api(_) | StreamKind::Upgrade(_)), None) | (Err(_), _) => {
                let mut response = Response::new(());
                *response.status_mut() = http::StatusCode::NOT_FOUND;
                respond.send_response(response, true).map(drop)
            }
        };
        if let Err(error) = result {
            debug!(%error, "stream ended early");
        }
    }
}
