//! Closes idle connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The time from an accepted connection, from the end of the handshake, or from the last response over HTTP/1.1, to the
/// head of the next request, as in kube-apiserver (`ReadHeaderTimeout` in `k8s.io/apiserver/pkg/server/secure_serving.go`).
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// The time from the end of the last request to the next one (`IdleTimeout` there).
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The time from GOAWAY (or `Connection: close`) until the connection is dropped, unless a request is running.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(5);

/// The running requests of one connection.
#[derive(Clone, Debug)]
pub(super) struct Requests(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    since: Instant,
    running: AtomicUsize,
    /// When the last one ended, in milliseconds after `since`.
    ended: AtomicU64,
}

/// A running request.
#[derive(Debug)]
pub(super) struct Running(Requests);

/// The idle timer of one connection.
#[derive(Debug)]
pub(super) struct Idle {
    requests: Requests,
    due: Pin<Box<Sleep>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serving,
    Closing,
}

/// What to do with an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Tell the client that the connection closes.
    Close,
    /// Close the connection.
    Drop,
}

// === impl Requests ===

impl Requests {
    /// For a connection whose handshake has just ended.
    pub(super) fn new() -> Self {
        Self(Arc::new(Counts { since: Instant::now(), running: AtomicUsize::new(0), ended: AtomicU64::new(0) }))
    }

    pub(super) fn begin(&self) -> Running {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    fn are_running(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) > 0
    }

    /// The time until which the connection may be idle.
    fn deadline(&self) -> Instant {
        let Counts { since, running, ended } = &*self.0;
        match (running.load(Ordering::Relaxed), ended.load(Ordering::Relaxed)) {
            (0, 0) => *since + HEADER_TIMEOUT,
            (0, ended) => *since + Duration::from_millis(ended) + IDLE_TIMEOUT,
            (_, _) => Instant::now() + IDLE_TIMEOUT,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Counts { since, running, ended } = &*self.0.0;
        // Not 0, which is for none.
        let now = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        ended.store(now, Ordering::Relaxed);
        running.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Idle ===

impl Idle {
    pub(super) fn new(requests: Requests) -> Self {
        let due = Box::pin(sleep_until(requests.deadline()));
        Self { requests, due, state: State::Serving }
    }

    /// Ready when the connection has been idle for too long, and again if it has not ended after that. Requests do not reset
    /// the timer. When it fires, it looks at the time of the last request, and may start again.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Verdict> {
        loop {
            ready!(self.due.as_mut().poll(cx));
            let deadline = self.requests.deadline();
            match self.state {
                // The client sent it before it received GOAWAY, so it is served to its end (RFC 9113, section 6.8).
                State::Closing if self.requests.are_running() => {
                    self.due.as_mut().reset(Instant::now() + GOAWAY_TIMEOUT);
                }
                State::Closing => return Poll::Ready(Verdict::Drop),
                State::Serving if deadline > Instant::now() => self.due.as_mut().reset(deadline),
                State::Serving => {
                    self.state = State::Closing;
                    self.due.as_mut().reset(Instant::now() + GOAWAY_TIMEOUT);
                    return Poll::Ready(Verdict::Close);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{advance, timeout};

    use super::*;

    async fn next(idle: &mut Idle) -> Verdict {
        poll_fn(|cx| idle.poll(cx)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_closed_and_then_dropped() {
        let (begun, mut idle) = (Instant::now(), Idle::new(Requests::new()));
        assert_eq!(next(&mut idle).await, Verdict::Close);
        assert_eq!(begun.elapsed(), HEADER_TIMEOUT);
        assert_eq!(next(&mut idle).await, Verdict::Drop);
        assert_eq!(begun.elapsed(), HEADER_TIMEOUT + GOAWAY_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_requests_is_not_idle() {
        let requests = Requests::new();
        let mut idle = Idle::new(requests.clone());
        let watch = requests.begin();
        assert!(timeout(20 * IDLE_TIMEOUT, next(&mut idle)).await.is_err());
        drop(watch);
        let ended = Instant::now();
        assert_eq!(next(&mut idle).await, Verdict::Close);
        assert_eq!(ended.elapsed().as_secs(), IDLE_TIMEOUT.as_secs());
        advance(GOAWAY_TIMEOUT).await;
        assert_eq!(next(&mut idle).await, Verdict::Drop);
    }

    /// The client begins a watch while GOAWAY is on its way.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_crosses_goaway_is_served_to_its_end() {
        let requests = Requests::new();
        let mut idle = Idle::new(requests.clone());
        assert_eq!(next(&mut idle).await, Verdict::Close);
        let watch = requests.begin();
        assert!(timeout(20 * GOAWAY_TIMEOUT, next(&mut idle)).await.is_err());
        drop(watch);
        assert_eq!(next(&mut idle).await, Verdict::Drop);
    }
}
