//! The offers of an agent while its tunnel is up, and which of them the configuration allows.
//!
//! The operator can edit the configurations of agent and proxy-server in any order: the proxy-server keeps the last
//! offers, and checks them again when its configuration has changed. A cluster that is refused does not affect the others,
//! whose streams continue. While another agent serves an offered cluster, the proxy-server checks the offers again from time
//! to time.

use std::collections::HashSet;
use std::error::Error;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_bytes;
use bytes::Bytes;
use h2::SendStream;
use http::{HeaderValue, Request};
use ops::backoff::Backoff;
use protocol::offers::{Lines, MIN_INTERVAL, Offers, Verdict, line};
use protocol::stream::OFFERS;
use protocol::{ClusterName, Offer, RefusalReason, RefusedClusters};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::grants::Grants;
use crate::registry::Registry;
use crate::tunnel::Tunnel;

/// The time for the agent to accept the stream of offers.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The pauses between checks of offers of clusters that another agent serves.
const CONFLICT_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// The offers of one tunnel.
pub(super) struct Offered<'a> {
    registry: &'a Registry,
    grants: Option<&'a Arc<Grants>>,
    tunnel: &'a Arc<Tunnel>,
    /// The last offers of the agent.
    last: Vec<Offer>,
    /// Those of them that are not in force.
    refused: Vec<RefusedClusters>,
    backoff: Backoff,
    /// Whether the process is stopping.
    draining: bool,
    rechecks: watch::Receiver<u64>,
}

/// What the stream of offers brings.
enum Received {
    Offers(Offers),
    /// The agent has ended the stream.
    End,
    /// The stream has failed, or cannot be parsed.
    Failure,
}

/// The stream on which the agent sends its offers.
struct OffersStream {
    inbound: Inbound,
    outbound: SendStream<Bytes>,
    lines: Lines,
}

// === impl Offered ===

impl<'a> Offered<'a> {
    /// Puts the offers of the registration into force.
    pub(super) fn register(
        (registry, grants): (&'a Registry, Option<&'a Arc<Grants>>),
        tunnel: &'a Arc<Tunnel>,
        registered: &[Offer],
    ) -> Self {
        // First, so that no configuration is missed that is loaded now.
        let rechecks = registry.rechecks();
        let refused = registry.renew(tunnel, registered);
        log(tunnel, &refused);
        Self {
            registry,
            grants,
            tunnel,
            last: registered.to_vec(),
            refused,
            backoff: CONFLICT_BACKOFF,
            draining: false,
            rechecks,
        }
    }

    /// The clusters that are in force.
    pub(super) fn in_force(&self) -> Vec<&ClusterName> {
        self.offers_in_force().map(|offer| &offer.name).collect()
    }

    fn offers_in_force(&self) -> impl Iterator<Item = &Offer> {
        let refused: HashSet<_> = self.refused.iter().flat_map(|refused| &refused.clusters).collect();
        self.last.iter().filter(move |offer| !refused.contains(&offer.name))
    }

    /// Keeps the registry up to date, for ever. `has_stream` says whether the agent supports the stream of offers. When
    /// `stopping` completes, tells the agent that this process is stopping.
    pub(super) async fn follow(mut self, has_stream: bool, stopping: impl Future<Output = ()>) {
        // The clusters may have been refused since the registration was accepted.
        self.end_if_useless();
        let opened = async { if has_stream { self.open_stream().await } else { None } };
        let mut stream = timeout(OPEN_TIMEOUT, opened).await.unwrap_or_default();
        if stream.is_none() {
            self.end_if_peer();
        }
        let mut not_before = Instant::now();
        let mut stopping = pin!(stopping);
        loop {
            let received = async {
                sleep_until(not_before).await;
                next(&mut stream).await
            };
            // A closing tunnel gets no more clusters, and may exist for hours.
            let is_conflict = self.has_conflict() && !self.tunnel.is_closing();
            let pause = { self.backoff }.fail_with_half_jitter();
            tokio::select! {
                received = received => match received {
                    Received::Offers(offers) => {
                        let before = std::mem::replace(&mut self.last, offers.clusters);
                        if let Some(grants) = self.grants() {
                            grants.withdraw(&self.tunnel.agent, withdrawn(&before, &self.last));
                            grants.admit(&self.tunnel.agent, &self.last).await;
                            grants.describe(&self.tunnel.agent, &self.last);
                        }
                        let verdict = self.check();
                        if self.tunnel.is_peer {
                            self.registry.peers().heard(self.tunnel);
                        }
                        send(&mut stream, verdict).await;
                        self.end_if_useless();
                        not_before = Instant::now() + MIN_INTERVAL;
                    }
                    Received::End => {
                        info!(agent = %self.tunnel.agent, "the tunnel gets no more requests, because its other end is leaving");
                        stream = None;
                        self.stop_using();
                    }
                    Received::Failure => {
                        stream = None;
                        self.end_if_peer();
                    }
                },
                reloaded = self.rechecks.changed() => {
                    if reloaded.is_err() {
                        pending::<()>().await;
                    }
                    // The grant may allow more now, or the cluster of another agent may be gone.
                    if let Some(grants) = self.grants().filter(|_| !self.refused.is_empty()) {
                        grants.admit(&self.tunnel.agent, &self.last).await;
                    }
                    self.end_if_not_granted();
                    self.check_again(&mut stream).await;
                }
                () = &mut stopping, if !self.draining => {
                    self.draining = true;
                    let verdict = self.verdict();
                    send(&mut stream, verdict).await;
                }
                () = sleep(pause), if is_conflict => {
                    self.backoff.fail();
                    self.check_again(&mut stream).await;
                }
            }
        }
    }

    /// The grants, if an agent may use them through this tunnel.
    fn grants(&self) -> Option<&'a Arc<Grants>> {
        self.grants.filter(|_| !self.tunnel.is_peer && !self.tunnel.is_closing())
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
            Ok((response, outbound)) if response.status().is_success() => Some(OffersStream {
                inbound: response.into_body(),
                outbound,
                lines: if self.tunnel.is_peer { Lines::of_peer() } else { Lines::default() },
            }),
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

    /// Checks the last offers without a request of the agent, and sends it the verdict if it is another one.
    async fn check_again(&mut self, stream: &mut Option<OffersStream>) {
        if self.tunnel.is_closing() {
            return;
        }
        let before = self.refused.clone();
        let verdict = self.check();
        if self.refused != before {
            send(stream, verdict).await;
        }
        self.end_if_useless();
    }

    /// Ends a tunnel that serves nothing, and will not without another configuration or other offers. Its agent gets the
    /// reason when it registers again.
    fn end_if_useless(&self) {
        let is_useless = !self.tunnel.is_peer && !self.last.is_empty() && self.in_force().is_empty();
        if is_useless && !self.has_conflict() {
            warn!(agent = %self.tunnel.agent, "closing the tunnel: the agent may not serve any cluster that it offers");
            self.tunnel.end.cancel();
        }
    }

    /// Ends a tunnel that gets no more requests, if the configuration no longer grants one of its clusters. The registry would only end
    /// the requests of that cluster, but it does not know the tunnel any more.
    fn end_if_not_granted(&self) {
        let has_left = !self.tunnel.is_peer && self.tunnel.is_closing();
        if has_left && !self.registry.clusters().grants_all(&self.tunnel.agent, self.offers_in_force()) {
            warn!(agent = %self.tunnel.agent, "closing the tunnel: the agent may no longer serve a cluster of it");
            self.tunnel.end.cancel();
        }
    }

    /// Another proxy-server offers its clusters only on the stream. Without one, its tunnel is useless. It will dial again.
    fn end_if_peer(&self) {
        if self.tunnel.is_peer {
            warn!("closing the tunnel of a proxy-server: it has no stream of offers");
            self.tunnel.end.cancel();
        }
    }

    /// The other end is about to stop accepting requests on this tunnel. Open streams continue. If the other end is a proxy-server, it
    /// is stopping, and watches through it must end soon. An agent ends its watches itself.
    fn stop_using(&self) {
        self.registry.remove(self.tunnel);
        if self.tunnel.is_peer {
            self.tunnel.leaving.cancel();
        }
    }

    /// Checks the last offers.
    fn check(&mut self) -> Verdict {
        let before: HashSet<_> = self.in_force().into_iter().cloned().collect();
        let refused = self.registry.renew(self.tunnel, &self.last);
        let new: Vec<_> = refused.iter().filter(|refused| !self.refused.contains(refused)).cloned().collect();
        self.refused.clone_from(&refused);
        let clusters = self.in_force();
        if self.tunnel.is_closing() {
            return self.verdict();
        }
        if clusters.len() != before.len() || !clusters.iter().all(|name| before.contains(*name)) {
            if self.tunnel.is_peer {
                debug!(
                    instance = self.tunnel.instance,
                    clusters = clusters.len(),
                    "a proxy-server offers other clusters"
                );
            } else {
                info!(agent = %self.tunnel.agent, clusters = ?names(clusters), "the agent's offers are in force");
            }
        }
        log(self.tunnel, &new);
        if !self.has_conflict() {
            self.backoff.reset();
        }
        self.verdict()
    }

    fn verdict(&self) -> Verdict {
        Verdict { draining: self.draining, ..Verdict::new(self.refused.clone()) }
    }

    fn has_conflict(&self) -> bool {
        self.refused.iter().any(|refused| refused.refusal.reason == RefusalReason::Conflict)
    }
}

fn log(tunnel: &Tunnel, refused: &[RefusedClusters]) {
    for refused in refused {
        let (agent, reason) = (&tunnel.agent, refused.refusal.reason);
        // Only the first names, because an agent may offer thousands at any time.
        warn!(%agent, ?reason, %refused, "offers refused; other clusters of the agent are not affected");
        debug!(%agent, ?reason, clusters = ?names(&refused.clusters), "all refused clusters");
    }
}

/// The names that are no longer offered.
fn withdrawn<'o>(before: &'o [Offer], now: &[Offer]) -> impl Iterator<Item = &'o ClusterName> {
    let now: HashSet<_> = now.iter().map(|offer| &offer.name).cloned().collect();
    before.iter().map(|offer| &offer.name).filter(move |name| !now.contains(*name))
}

fn names<'a>(clusters: impl IntoIterator<Item = &'a ClusterName>) -> Vec<&'a str> {
    clusters.into_iter().map(ClusterName::as_str).collect()
}

async fn send(stream: &mut Option<OffersStream>, verdict: Verdict) {
    if let Some(OffersStream { outbound, .. }) = stream {
        // It fails when the tunnel ends, which other tasks handle.
        let _ = send_bytes(outbound, Bytes::from(line(&verdict)), false).await;
    }
}

/// The next offers of the agent.
async fn next(stream: &mut Option<OffersStream>) -> Received {
    let Some(stream) = stream else { return pending().await };
    // Only the latest offers count. Read all that has arrived, because the end of the stream must be noticed soon.
    let mut latest = None;
    loop {
        let chunk = poll_fn(|cx| match stream.inbound.poll_chunk(cx) {
            Poll::Pending if latest.is_some() => Poll::Ready(None),
            polled => polled.map(Some),
        });
        let chunk = match chunk.await {
            Some(Some(Ok(chunk))) => chunk,
            Some(Some(Err(_))) => return Received::Failure,
            Some(None) => return Received::End,
            None => match latest {
                Some(offers) => return Received::Offers(offers),
                None => continue,
            },
        };
        match stream.lines.take::<Offers>(&chunk) {
            Ok(mut offers) => latest = offers.pop().or(latest),
            Err(error) => {
                warn!(%error, "cannot parse the agent's offers");
                return Received::Failure;
            }
        }
    }
}

#[cfg(test)]
mod tests;
