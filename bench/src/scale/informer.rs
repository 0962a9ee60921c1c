//! One informer, with the requests of client-go: first a watch that sends all objects, then watches from the last
//! version.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube_wire::watch::JsonFrames;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};

use super::frame::WatchFrame;
use super::ledger::Ledger;
use crate::site::{JSON, Member};
use crate::watch::stamp::Stamp;

/// One informer.
pub(super) struct Informer {
    pub(super) member: Arc<Member>,
    /// The path of the objects, and a selector as `&labelSelector=...` or nothing.
    pub(super) path: String,
    pub(super) selector: &'static str,
    /// `timeoutSeconds` of its watches.
    pub(super) watch_seconds: u64,
    pub(super) events: EventSink,
}

/// Where the received events are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventSink {
    /// The informer receives none.
    None,
    /// As events of this informer of this cluster.
    Cluster { cluster: usize, informer: usize },
    /// As events of the host itself.
    Direct,
}

/// What all informers share.
pub(super) struct Board {
    pub(super) ledger: Ledger,
    pub(super) epoch: Instant,
    /// How many informers may wait for their initial objects at the same time.
    opening: Semaphore,
    pub(super) synced: AtomicU64,
    /// Watches that have begun.
    pub(super) begun: AtomicU64,
    /// Informers that had to receive all objects again.
    pub(super) relists: AtomicU64,
    /// Requests that client-go repeats without a message, because the response has `Retry-After`.
    pub(super) repeated: AtomicU64,
    failures: Mutex<BTreeMap<String, u64>>,
}

/// The position of an informer between its watches.
#[derive(Debug, Default)]
struct Position {
    /// `None`: the next watch sends all objects.
    version: Option<String>,
    synced_before: bool,
    /// How often the current request was repeated.
    repeated: u32,
}

/// Why a watch ended before its time.
enum Ended {
    /// The informer must receive all objects again.
    Expired,
    /// The server requests another attempt.
    Later {
        status: StatusCode,
        pause: Duration,
    },
    Failed(String),
}

/// The maximum size of an event, in bytes.
const MAX_FRAME: usize = 8 << 20;
const OPENING: usize = 64;
/// How often client-go repeats a request whose response has `Retry-After` (`maxRetries` in `rest/request.go`).
const MAX_REPEATS: u32 = 10;
/// The pause after a failed watch.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A watch that does not end this long after its time counts as failed.
const OVERTIME: Duration = Duration::from_secs(30);

// === impl Board ===

impl Board {
    pub(super) fn new(ledger: Ledger, epoch: Instant) -> Self {
        Self {
            ledger,
            epoch,
            opening: Semaphore::new(OPENING),
            synced: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            relists: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    /// The number of failed watches, by reason.
    pub(super) fn failures(&self) -> BTreeMap<String, u64> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, reason: String) {
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }
}

// === impl Informer ===

impl Informer {
    /// Watches until it is dropped.
    pub(super) async fn run(self, board: Arc<Board>) {
        let mut position = Position::default();
        loop {
            let opening = match position.version {
                None => board.opening.acquire().await.ok(),
                Some(_) => None,
            };
            let limit = Duration::from_secs(self.watch_seconds) + OVERTIME;
            let ended = timeout(limit, self.watch(&mut position, opening, &board)).await;
            match ended.unwrap_or_else(|_| Err(Ended::Failed("a watch did not end in time".to_owned()))) {
                Ok(()) => {}
                Err(Ended::Expired) => {
                    board.relists.fetch_add(1, Ordering::Relaxed);
                    position.version = None;
                }
                Err(Ended::Later { pause, .. }) if position.repeated < MAX_REPEATS => {
                    position.repeated += 1;
                    board.repeated.fetch_add(1, Ordering::Relaxed);
                    sleep(pause).await;
                }
                Err(Ended::Later { status, .. }) => {
                    position.repeated = 0;
                    board.fail(format!("status {} after {MAX_REPEATS} attempts", status.as_u16()));
                }
                Err(Ended::Failed(reason)) => {
                    board.fail(reason);
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// One watch. Releases `opening` when it has received the initial objects.
    async fn watch(
        &self,
        position: &mut Position,
        mut opening: Option<SemaphorePermit<'_>>,
        board: &Board,
    ) -> Result<(), Ended> {
        let uri = self.uri(position);
        let response = self.member.send(Method::GET, &uri, JSON, String::new()).await;
        let response = response.map_err(|error| Ended::Failed(format!("request: {error:#}")))?;
        match response.status() {
            status if status.is_success() => {}
            StatusCode::GONE => return Err(Ended::Expired),
            status if let Some(pause) = retry_after(&response) => return Err(Ended::Later { status, pause }),
            status => return Err(Ended::Failed(format!("status {}", status.as_u16()))),
        }
        position.repeated = 0;
        board.begun.fetch_add(1, Ordering::Relaxed);
        let mut body = response.into_body();
        let mut frames = JsonFrames::new(MAX_FRAME);
        let mut initial = position.version.is_none();
        while let Some(chunk) = body.frame().await {
            let chunk =
                chunk.map_err(|error| Ended::Failed(format!("the stream broke: {:#}", anyhow::Error::from(error))))?;
            let received = board.epoch.elapsed();
            frames.push(chunk.data_ref().unwrap_or(&Bytes::new())).map_err(failed)?;
            while let Some(frame) = frames.next_frame().map_err(failed)? {
                match WatchFrame::read(frame).map_err(failed)? {
                    WatchFrame::Error { code: 410 } => return Err(Ended::Expired),
                    WatchFrame::Error { code } => return Err(Ended::Failed(format!("error event {code}"))),
                    WatchFrame::Bookmark { initial_events_end: true, version } if initial => {
                        initial = false;
                        position.version = Some(version);
                        if !std::mem::replace(&mut position.synced_before, true) {
                            board.synced.fetch_add(1, Ordering::Relaxed);
                        }
                        opening = None;
                    }
                    // The initial objects are in no order, so their versions are not a position.
                    WatchFrame::Change { version } | WatchFrame::Bookmark { version, .. } => {
                        if !initial {
                            position.version = Some(version);
                        }
                        self.record(frame, received, initial, board);
                    }
                }
            }
        }
        drop(opening);
        if initial { Err(Ended::Failed("ended before all objects were sent".to_owned())) } else { Ok(()) }
    }

    fn record(&self, frame: &[u8], received: Duration, repeated: bool, board: &Board) {
        if matches!(self.events, EventSink::None) {
            return;
        }
        let Some(stamp) = Stamp::find(frame) else { return };
        let latency = received.saturating_sub(stamp.sent);
        match self.events {
            EventSink::None => {}
            EventSink::Cluster { cluster, informer } => {
                board.ledger.receive(cluster, informer, stamp.number, latency, repeated);
            }
            EventSink::Direct => board.ledger.receive_directly(latency),
        }
    }

    fn uri(&self, position: &Position) -> String {
        let Self { path, selector, watch_seconds, .. } = self;
        let common = format!("{path}?allowWatchBookmarks=true&watch=true&timeoutSeconds={watch_seconds}{selector}");
        match &position.version {
            None => format!("{common}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
            Some(version) => format!("{common}&resourceVersion={version}"),
        }
    }
}

/// The pause that a response to a refused request asks for, as client-go reads it (`rest/with_retry.go`).
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()).then(|| Duration::from_secs(seconds))
}

fn failed(error: impl std::error::Error) -> Ended {
    Ended::Failed(error.to_string())
}

/// Waits until this number of informers has received all objects.
pub(super) async fn all_synced(board: &Board, informers: u64, limit: Duration) -> anyhow::Result<()> {
    let synced = async {
        while board.synced.load(Ordering::Relaxed) < informers {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(limit, synced).await.with_context(|| {
        let synced = board.synced.load(Ordering::Relaxed);
        format!("{synced} of {informers} informers have received all objects in time; failures: {:?}", board.failures())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::drain::Tasks;

    const KUBECONFIG: &str = "
current-context: a
clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: t}}]
";

    #[test]
    fn client_go_repeats_what_the_server_asks_it_to_repeat() {
        let pause = |status: u16, header: Option<&str>| {
            let response = Response::builder().status(status);
            let response = header.into_iter().fold(response, |response, value| response.header(RETRY_AFTER, value));
            retry_after(&response.body(()).unwrap()).map(|pause| pause.as_secs())
        };
        assert_eq!(
            [pause(503, Some("2")), pause(429, Some("1")), pause(404, Some("1")), pause(503, None)],
            [Some(2), Some(1), None, None]
        );
    }

    #[test]
    fn the_first_watch_sends_all_objects_and_later_ones_resume() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), KUBECONFIG).unwrap();
        let informer = Informer {
            member: Member::of_kubeconfig(file.path(), &Tasks::new()).unwrap(),
            path: "/api/v1/configmaps".to_owned(),
            selector: "&labelSelector=a",
            watch_seconds: 32,
            events: EventSink::None,
        };
        let common = "/api/v1/configmaps?allowWatchBookmarks=true&watch=true&timeoutSeconds=32&labelSelector=a";
        let mut position = Position::default();
        let first = format!("{common}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        assert_eq!(informer.uri(&position), first);
        position.version = Some("7".to_owned());
        assert_eq!(informer.uri(&position), format!("{common}&resourceVersion=7"));
    }
}
