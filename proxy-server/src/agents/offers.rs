//! The offers of an agent while its tunnel is up, and which of them the configuration allows.
//!
//! The operator can edit the configurations of agent and proxy-server in any order: the proxy-server keeps the last
//! offers, and checks them again when its configuration has changed. If an offer is refused, the clusters that are served
//! do not change, and their streams continue.

use std::error::Error;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_bytes;
use bytes::Bytes;
use h2::SendStream;
use http::{HeaderValue, Request};
use protocol::offers::{Lines, Offers, Verdict, line};
use protocol::stream::OFFERS;
use protocol::{Offer, Refusal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::registry::Registry;
use crate::tunnel::Tunnel;

/// The minimum time between two checks of offers. A check holds the lock of the registry, and an agent may send offers at
/// any rate.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// The offers of one tunnel.
pub(super) struct Offered<'a> {
    registry: &'a Registry,
    tunnel: &'a Arc<Tunnel>,
    /// The last offers of the agent.
    last: Vec<Offer>,
    /// The last offers that were accepted.
    in_force: Vec<Offer>,
    refused: Option<Refusal>,
    reloads: watch::Receiver<u64>,
}

/// The stream on which the agent sends its offers.
struct OffersStream {
    inbound: Inbound,
    outbound: SendStream<Bytes>,
    lines: Lines,
}

// === impl Offered ===

impl<'a> Offered<'a> {
    /// The offers of the registration.
    pub(super) fn new(registry: &'a Registry, tunnel: &'a Arc<Tunnel>, registered: &[Offer]) -> Self {
        let (last, in_force) = (registered.to_vec(), registered.to_vec());
        Self { registry, tunnel, last, in_force, refused: None, reloads: registry.reloads() }
    }

    /// Keeps the registry up to date, for ever. `has_stream` says whether the agent supports the stream of offers.
    pub(super) async fn follow(mut self, has_stream: bool) {
        let mut stream = if has_stream { self.open_stream().await } else { None };
        let mut not_before = Instant::now();
        loop {
            let received = async {
                sleep_until(not_before).await;
                next(&mut stream).await
            };
            tokio::select! {
                received = received => if let Some(offers) = received {
                    self.last = offers.clusters;
                    self.check(&mut stream).await;
                    not_before = Instant::now() + MIN_INTERVAL;
                } else {
                    debug!(agent = %self.tunnel.agent, "the agent has closed its stream of offers");
                    stream = None;
                },
                reloaded = self.reloads.changed() => {
                    if reloaded.is_err() {
                        pending::<()>().await;
                    }
                    self.check(&mut stream).await;
                }
            }
        }
    }

    /// Opens the stream of offers. `None` if the agent refuses it, or the tunnel ends.
    async fn open_stream(&self) -> Option<OffersStream> {
        let mut head = Request::new(());
        *head.uri_mut() = http::Uri::from_static("https://atoll/");
        head.headers_mut().insert(OFFERS, HeaderValue::from_static("1"));
        let opened = async {
            let (outbound, pending) = self.tunnel.reserve(None).await?.open(head, false)?.split();
            // The lease is dropped, because this stream is always open and must not count as load.
            let (response, _lease) = pending.wait().await?;
            Ok::<_, Box<dyn Error + Send + Sync>>((response, outbound))
        };
        match opened.await {
            Ok((response, outbound)) if response.status().is_success() => {
                Some(OffersStream { inbound: response.into_body(), outbound, lines: Lines::default() })
            }
            Ok((response, ..)) => {
                warn!(agent = %self.tunnel.agent, status = %response.status(), "the agent refused to send its offers");
                None
            }
            Err(error) => {
                debug!(error = &*error as &dyn Error, "cannot request the agent's offers");
                None
            }
        }
    }

    /// Checks the last offers, and sends the agent the verdict.
    async fn check(&mut self, stream: &mut Option<OffersStream>) {
        let refused = self.registry.renew(self.tunnel, &self.last).err();
        match &refused {
            None if self.in_force == self.last => {}
            None => {
                let clusters: Vec<_> = self.last.iter().map(|offer| offer.name.as_str()).collect();
                info!(agent = %self.tunnel.agent, ?clusters, "the agent's offers are in force");
                self.in_force.clone_from(&self.last);
            }
            Some(refusal) if self.refused.as_ref() != Some(refusal) => {
                warn!(agent = %self.tunnel.agent, reason = ?refusal.reason, %refusal, "new offers refused; the previous offers stay in force");
            }
            Some(_) => return,
        }
        self.refused.clone_from(&refused);
        if let Some(OffersStream { outbound, .. }) = stream {
            let verdict = line(&Verdict { refusal: refused });
            // It fails when the tunnel ends, which other tasks handle.
            let _ = send_bytes(outbound, Bytes::from(verdict), false).await;
        }
    }
}

/// The next offers of the agent. `None` at the end of the stream.
async fn next(stream: &mut Option<OffersStream>) -> Option<Offers> {
    let Some(stream) = stream else { return pending().await };
    loop {
        let chunk = poll_fn(|cx| stream.inbound.poll_chunk(cx)).await?.ok()?;
        match stream.lines.take::<Offers>(&chunk) {
            // Only the latest offers count.
            Ok(mut offers) => {
                if let Some(offers) = offers.pop() {
                    return Some(offers);
                }
            }
            Err(error) => {
                warn!(%error, "cannot parse the agent's offers");
                return None;
            }
        }
    }
}
