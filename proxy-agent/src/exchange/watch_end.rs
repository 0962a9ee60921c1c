//! Ends watches while the agent stops.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kube_wire::watch_frames::WatchFrames;
use ops::drain::spread_end;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The body of a watch. When the tunnel is drained, it ends between two events, and at a different time from other
/// watches.
pub(super) struct EndingWatch<B> {
    body: B,
    /// `None` if the body is not that of a watch.
    end: Option<End>,
}

struct End {
    frames: WatchFrames,
    due: Pin<Box<dyn Future<Output = ()> + Send>>,
}

// === impl EndingWatch ===

impl<B> EndingWatch<B> {
    /// A watch with these frames. `drain` is how long streams have when `draining` is cancelled.
    pub(super) fn watch(body: B, frames: WatchFrames, draining: CancellationToken, drain: Duration) -> Self {
        let due = async move {
            draining.cancelled_owned().await;
            sleep(spread_end(drain)).await;
        };
        Self { body, end: Some(End { frames, due: Box::pin(due) }) }
    }

    /// Another body.
    pub(super) fn other(body: B) -> Self {
        Self { body, end: None }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for EndingWatch<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let Some(end) = &mut this.end else { return polled };
        match &polled {
            Poll::Pending if end.frames.is_between() => {
                ready!(end.due.as_mut().poll(cx));
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Ok(frame))) => end.frames.push(frame.data_ref().map_or(&[], |bytes| bytes)),
            _ => {}
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
    use std::convert::Infallible;

    use http_body_util::BodyExt;
    use tokio::sync::mpsc;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, timeout};

    use super::*;

    const DRAIN: Duration = Duration::from_secs(30);

    const JSON: WatchFrames = WatchFrames::Json { is_between: true };

    struct Events(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Events {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn watches_end_at_different_times_within_the_drain() {
        let (draining, mut watches, mut senders) = (CancellationToken::new(), JoinSet::new(), Vec::new());
        for _ in 0..20 {
            let (events, receiver) = mpsc::unbounded_channel();
            let mut watch = EndingWatch::watch(Events(receiver), JSON, draining.clone(), DRAIN);
            assert!(timeout(DRAIN, watch.frame()).await.is_err(), "it lasts until the agent stops");
            events.send(Bytes::from("event\n")).unwrap();
            senders.push(events);
            let draining = draining.clone();
            watches.spawn(async move {
                draining.cancelled().await;
                let begun = Instant::now();
                assert!(watch.frame().await.unwrap().is_ok(), "events that have arrived are not lost");
                assert!(watch.frame().await.is_none());
                begun.elapsed()
            });
        }
        draining.cancel();
        let times = watches.join_all().await;
        let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*last < DRAIN && last.abs_diff(*first) > DRAIN / 6, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn other_bodies_end_by_themselves() {
        let mut body = EndingWatch::other(Events(mpsc::unbounded_channel().1));
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_cuts_no_event() {
        let (events, receiver) = mpsc::unbounded_channel();
        let draining = CancellationToken::new();
        draining.cancel();
        let mut watch = EndingWatch::watch(Events(receiver), JSON, draining, DRAIN);
        events.send(Bytes::from("half an ")).unwrap();
        assert!(watch.frame().await.unwrap().is_ok());
        assert!(timeout(DRAIN, watch.frame()).await.is_err());
        events.send(Bytes::from("event\n")).unwrap();
        assert!(watch.frame().await.unwrap().is_ok());
        assert!(watch.frame().await.is_none());
    }
}
