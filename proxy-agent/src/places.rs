//! Places at the host for responses that stream.
//!
//! An API server sends a list as fast as the client reads it, and until then the list occupies up to ten seats of API
//! priority and fairness (KEP-1040). A watch occupies seats until its initial events are sent (`WatchInitialized` in
//! apiserver's `pkg/util/flowcontrol`). All virtual clusters share the seats, so the responses of one occupy only some of
//! them at a time. Others wait, as in the host's own queues.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::host::{QUEUE_WAIT, REQUEST_TIMEOUT};

/// The seats at the host that responses of one virtual cluster may occupy. By default, an API server has 49 of its 600
/// seats for all clients that no FlowSchema of its operator selects.
const SEATS: usize = 30;

/// The time that a response keeps its place although the client reads nothing of it.
const STALLED: Duration = Duration::from_secs(10);

/// When a watch that the client reads has been silent for this time, its initial events are sent. An event takes the host
/// some milliseconds.
const INITIAL: Duration = Duration::from_millis(100);

/// The same for a watch that begins at a version, which has few events to begin with. There are many at once: informers
/// that come back after a break.
const SINCE: Duration = Duration::from_millis(10);

/// The places of one virtual cluster.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
}

/// How long a response needs its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until all of it is read.
    End,
    /// Until the initial events of a watch are read, which are all objects.
    Initial,
    /// The same for a watch from a version on.
    Since,
}

/// A place, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    until: Until,
    /// How often the body has been asked for more.
    polled: AtomicUsize,
}

/// A body that keeps its place while the host sends it.
pub(crate) struct InPlace<B> {
    body: B,
    place: Option<Arc<Place>>,
    /// The time that the client has to read what is held in memory.
    patience: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
}

// === impl Places ===

impl Default for Places {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(SEATS)) }
    }
}

impl Places {
    /// Waits for a place; `None` if there is none in time.
    pub(crate) async fn take(&self, until: Until) -> Option<Place> {
        let permit = timeout(QUEUE_WAIT, Arc::clone(&self.free).acquire_many_owned(until.seats())).await.ok()?.ok()?;
        Some(Place { _permit: permit, until, polled: AtomicUsize::new(0) })
    }
}

// === impl Until ===

impl Until {
    /// The most that kube-apiserver counts for it (`listWorkEstimator` in apiserver's `pkg/util/flowcontrol/request`).
    fn seats(self) -> u32 {
        match self {
            Self::End | Self::Initial => 10,
            Self::Since => 1,
        }
    }

    /// How long a body is silent that does not need its place any more.
    fn silence(self) -> Option<Duration> {
        match self {
            Self::End => None,
            Self::Initial => Some(INITIAL),
            Self::Since => Some(SINCE),
        }
    }
}

// === impl InPlace ===

impl<B> InPlace<B> {
    /// The body, in its place if it has one.
    pub(crate) fn new(body: B, place: Option<Place>) -> Self {
        Self { body, place: place.map(Arc::new), patience: None, silence: None }
    }

    /// A body that is held in memory for a client who reads it within this time.
    pub(crate) fn in_memory(body: B, patience: Duration) -> Self {
        Self { body, place: None, patience: Some(patience), silence: None }
    }

    /// Returns when the client has not read in time what is held in memory, or what needs the place.
    pub(crate) fn overdue(&self) -> impl Future<Output = ()> + use<B> {
        let (place, patience) = (self.place.as_ref().map(Arc::downgrade), self.patience);
        async move {
            if let Some(patience) = patience {
                return sleep(patience).await;
            }
            let (start, mut before) = (Instant::now(), 0);
            while start.elapsed() < REQUEST_TIMEOUT {
                sleep(STALLED).await;
                let Some(place) = place.as_ref().and_then(Weak::upgrade) else { return pending().await };
                let polled = place.polled.load(Ordering::Relaxed);
                if polled == before {
                    return;
                }
                before = polled;
            }
        }
    }

    /// Whoever polls has sent everything that came before.
    fn wait(&mut self, cx: &mut Context<'_>) {
        let Some(time) = self.place.as_ref().and_then(|place| place.until.silence()) else { return };
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(time)));
        if silence.as_mut().poll(cx).is_ready() {
            (self.place, self.silence) = (None, None);
        }
    }
}

impl<B: Body + Unpin> Body for InPlace<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        if let Some(place) = &this.place {
            place.polled.fetch_add(1, Ordering::Relaxed);
        }
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        match &polled {
            // Silence begins when somebody listens: a client that is slow to read this one does not.
            Poll::Ready(Some(Ok(_))) if !this.body.is_end_stream() => this.silence = None,
            Poll::Ready(_) => this.place = None,
            Poll::Pending => this.wait(cx),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::BodyExt;
    use tokio::sync::mpsc;

    use super::*;

    /// What was sent.
    struct Sent(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Sent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    async fn in_place(places: &Places, until: Until) -> (mpsc::UnboundedSender<Bytes>, InPlace<Sent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, InPlace::new(Sent(receiver), places.take(until).await))
    }

    async fn read(body: &mut InPlace<Sent>) -> bool {
        poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.is_some()
    }

    /// Polls a silent body, as who sends it does.
    async fn listen(body: &mut InPlace<Sent>, time: Duration) {
        assert!(timeout(time, body.frame()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_keeps_its_place_to_its_end() {
        let places = Places::default();
        let (source, mut list) = in_place(&places, Until::End).await;
        source.send(Bytes::from("some")).unwrap();
        assert!(read(&mut list).await);
        listen(&mut list, REQUEST_TIMEOUT).await;
        assert!(places.free.available_permits() < SEATS);
        drop(source);
        assert!(!read(&mut list).await);
        assert_eq!(places.free.available_permits(), SEATS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_keeps_its_place_until_it_is_silent() {
        for (until, silence) in [(Until::Initial, INITIAL), (Until::Since, SINCE)] {
            let places = Places::default();
            let (source, mut watch) = in_place(&places, until).await;
            listen(&mut watch, silence / 2).await;
            source.send(Bytes::from("initial")).unwrap();
            assert!(read(&mut watch).await);
            listen(&mut watch, silence / 2).await;
            assert!(places.free.available_permits() < SEATS);
            let overdue = watch.overdue();
            listen(&mut watch, silence).await;
            assert_eq!(places.free.available_permits(), SEATS);
            assert!(timeout(2 * REQUEST_TIMEOUT, overdue).await.is_err(), "a watch goes on");
        }
    }

    /// What is not polled is not read: the place is kept, until its time is over.
    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_is_overdue() {
        let places = Places::default();
        let (_source, mut watch) = in_place(&places, Until::Initial).await;
        listen(&mut watch, INITIAL / 2).await;
        let overdue = watch.overdue();
        let start = Instant::now();
        overdue.await;
        assert_eq!(start.elapsed(), 2 * STALLED);
        assert!(places.free.available_permits() < SEATS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_read_slowly_is_overdue() {
        let places = Places::default();
        let (_source, mut list) = in_place(&places, Until::End).await;
        let start = Instant::now();
        tokio::select! {
            () = list.overdue() => {}
            () = async { loop { listen(&mut list, STALLED / 2).await } } => {}
        }
        assert_eq!(start.elapsed(), REQUEST_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn few_have_a_place() {
        let places = Places::default();
        let mut taken = Vec::new();
        while places.free.available_permits() > 0 {
            taken.push(places.take(Until::End).await);
        }
        let start = Instant::now();
        assert!(places.take(Until::End).await.is_none());
        assert_eq!(start.elapsed(), QUEUE_WAIT);
        taken.pop();
        assert!(places.take(Until::End).await.is_some());
    }
}
