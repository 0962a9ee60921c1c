//! One watch: the changes that it receives, and when.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Method, Uri};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use kube_wire::watch::JsonFrames;
use ops::drain::Tasks;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::deliveries::{Deliveries, Written};
use super::stamp::Stamp;
use super::writer::SELECTOR;
use crate::client::{self, Connection};
use crate::target::Target;

pub(super) type Open = Connection<Full<Bytes>>;

/// The request of a watch, and its limits.
pub(super) struct Watcher {
    pub(super) target: Target,
    pub(super) uri: Uri,
    pub(super) epoch: Instant,
    /// The time after the last write in which all changes must arrive.
    pub(super) grace: Duration,
}

/// The result of a watch.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) deliveries: Deliveries,
    pub(super) lost: usize,
    /// The API server ended it before the run ended.
    pub(super) ended_early: bool,
}

/// The body of a watch.
struct Stream<B> {
    body: B,
    frames: JsonFrames,
    epoch: Instant,
    deliveries: Deliveries,
}

/// The maximum size of an event, in bytes. An event of a ConfigMap has a few KB.
const MAX_FRAME: usize = 4 << 20;

pub(super) async fn connect(target: &Target, tasks: &Tasks) -> anyhow::Result<Open> {
    Open::open(target, tasks).await.context("cannot connect for a watch")
}

/// The resource version from which a watch receives all future changes.
pub(super) async fn resource_version(target: &Target, tasks: &Tasks, path: &str) -> anyhow::Result<String> {
    let uri = target.uri(&format!("{path}?labelSelector={SELECTOR}"))?;
    let mut connection = connect(target, tasks).await?;
    let response = connection.send(client::request(target, Method::GET, uri, Full::default())).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "cannot list ConfigMaps: {status}: {}", String::from_utf8_lossy(&body));
    let list: serde_json::Value = serde_json::from_slice(&body).context("the list is not JSON")?;
    Ok(list["metadata"]["resourceVersion"].as_str().context("the list has no resourceVersion")?.to_owned())
}

// === impl Watcher ===

impl Watcher {
    /// Watches until all written changes have arrived, or the grace period is over. Sends a message to `opened` when
    /// the watch has begun.
    pub(super) async fn run(
        self,
        mut connection: Open,
        written: Arc<Written>,
        opened: mpsc::Sender<()>,
    ) -> anyhow::Result<Watched> {
        let request = client::request(&self.target, Method::GET, self.uri.clone(), Full::default());
        let response = connection.send(request).await.context("cannot watch")?;
        let (status, body) = (response.status(), response.into_body());
        if !status.is_success() {
            let body = body.collect().await?.to_bytes();
            anyhow::bail!("cannot watch: {status}: {}", String::from_utf8_lossy(&body));
        }
        // The receiver is gone only if another watch could not begin. Then the run fails.
        opened.send(()).await.ok();
        drop(opened);

        let mut stream = Stream::new(body, self.epoch);
        let (mut closing, deadline) = (false, sleep(Duration::MAX));
        tokio::pin!(deadline);
        let ended_early = loop {
            tokio::select! {
                more = stream.more() => if !more? {
                    break true;
                },
                () = written.closed(), if !closing => {
                    closing = true;
                    deadline.as_mut().reset(Instant::now() + self.grace);
                }
                () = &mut deadline, if closing => break false,
            }
            if closing && stream.deliveries.lost(&written) == 0 {
                break false;
            }
        };
        let deliveries = stream.deliveries;
        Ok(Watched { lost: deliveries.lost(&written), deliveries, ended_early })
    }
}

// === impl Stream ===

impl<B> Stream<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    fn new(body: B, epoch: Instant) -> Self {
        Self { body, frames: JsonFrames::new(MAX_FRAME), epoch, deliveries: Deliveries::new() }
    }

    /// Receives the next chunk. Returns `false` at the end. It is cancel safe.
    async fn more(&mut self) -> anyhow::Result<bool> {
        let Some(frame) = self.body.frame().await else { return Ok(false) };
        let Ok(chunk) = frame.context("the connection of a watch was closed")?.into_data() else { return Ok(true) };
        let received = self.epoch.elapsed();
        self.frames.push(&chunk)?;
        while let Some(frame) = self.frames.next_frame()? {
            if let Some(stamp) = Stamp::find(frame) {
                self.deliveries.record(stamp.number, received.saturating_sub(stamp.sent));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;

    struct Chunks(VecDeque<Bytes>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_found_for_any_chunk_size() {
        let epoch = Instant::now();
        let event = |number| {
            let stamp = Stamp { number, sent: Duration::from_millis(40) };
            format!(r#"{{"type":"MODIFIED","object":{}}}"#, stamp.patch()) + "\n"
        };
        let bookmark = "{\"type\":\"BOOKMARK\",\"object\":{}}\n";
        let text = event(1) + bookmark + &event(2) + &event(2);
        tokio::time::advance(Duration::from_millis(100)).await;
        for chunk in [1, 7, 1_000] {
            let chunks = text.as_bytes().chunks(chunk).map(Bytes::copy_from_slice);
            let mut stream = Stream::new(Chunks(chunks.collect()), epoch);
            while stream.more().await.unwrap() {}
            let summary = stream.deliveries.latencies.summary();
            assert_eq!((stream.deliveries.latencies.count(), stream.deliveries.twice), (2, 1));
            assert!((59.9..60.1).contains(&summary.max), "{summary:?}");
        }
    }
}
