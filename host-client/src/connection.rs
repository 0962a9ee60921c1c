//! One HTTP/2 connection to an API server.
//!
//! `h2` is used directly. Its budget for small frames (new in 0.4.16) counts unread events of all watches of a
//! connection together and ends the connection for a hundred of them; a client library hides the knob. Streams are
//! counted here, response bodies included, so that a request never waits in a queue behind watches.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::Ping;
use h2::client::{Builder, SendRequest};
use http::{Request, StatusCode};
use tokio::time::{Instant, timeout};
use tunnel::keepalive::{PeerLost, keepalive};
use tunnel::{Batched, Turns};

use super::dial::BoxIo;
use super::error::{ConnectReason, Stage};
use super::limits;

/// A connection that takes requests. As long as anybody holds it or one of its [`Permit`]s, it stays open.
pub(super) struct Connection {
    handle: SendRequest<Bytes>,
    /// Streams, and [`RETIRED`].
    streams: AtomicUsize,
    idle_since: Mutex<Instant>,
}

/// The right to one stream, until dropped.
pub(super) struct Permit {
    connection: Arc<Connection>,
    pub(super) handle: SendRequest<Bytes>,
}

/// Moves the bytes; ends with the connection.
pub(super) struct Driver {
    connection: h2::client::Connection<Batched<BoxIo>, Bytes>,
    turns: Turns<BoxIo>,
    pings: h2::PingPong,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// As it should: closed by us, or after GOAWAY.
    Closed,
    /// Broken.
    Broken(h2::Error),
    /// The API server does not answer any more, and would not on a new connection either.
    Silent(PeerLost),
}

/// The bit that says "no more streams".
const RETIRED: usize = 1 << (usize::BITS - 1);

// === impl Connection ===

impl Connection {
    /// Begins HTTP/2 and waits for the answer to a first ping: then the API server has told how many streams it takes
    /// (its SETTINGS come first, RFC 9113 section 3.4), and it is alive.
    pub(super) async fn open(io: BoxIo) -> Result<(Self, Driver), ConnectReason> {
        timeout(limits::HANDSHAKE, Self::handshake(io))
            .await
            .map_err(|_| ConnectReason::Silent(Stage::Http))?
            .map_err(|error| ConnectReason::Http(error.to_string().into()))
    }

    async fn handshake(io: BoxIo) -> Result<(Self, Driver), h2::Error> {
        let (io, turns) = Batched::new(io);
        let (handle, mut connection) = builder().handshake(io).await?;
        let mut pings = connection.ping_pong().expect("nobody took it before");
        tokio::select! {
            ended = &mut connection => {
                ended?;
                return Err(h2::Reason::NO_ERROR.into());
            }
            pong = pings.ping(Ping::opaque()) => pong?,
        };
        let connection_and_count =
            Self { handle, streams: AtomicUsize::new(0), idle_since: Mutex::new(Instant::now()) };
        Ok((connection_and_count, Driver { connection, turns, pings }))
    }

    /// One request before anybody else uses the connection; its answer's status.
    pub(super) async fn ask(&self, driver: &mut Driver, request: Request<()>) -> Result<StatusCode, h2::Error> {
        let (response, _) = self.handle.clone().send_request(request, true)?;
        tokio::select! {
            ended = &mut driver.connection => {
                ended?;
                Err(h2::Reason::NO_ERROR.into())
            }
            response = response => Ok(response?.status()),
        }
    }

    /// A stream, if there is room for one.
    pub(super) fn permit(self: &Arc<Self>) -> Option<Permit> {
        let most = self.usable();
        let taken = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| {
            // A retired connection's count is above any limit.
            (streams < most).then_some(streams + 1)
        });
        taken.ok()?;
        let mut permit = Permit { connection: Arc::clone(self), handle: self.handle.clone() };
        // Never pending: no stream of this handle waits to be opened. An error is a GOAWAY or a broken connection.
        let ready = permit.handle.poll_ready(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(_)) = ready {
            self.retire();
            return None;
        }
        Some(permit)
    }

    /// Streams that the API server takes, less a margin.
    pub(super) fn usable(&self) -> usize {
        limits::usable(self.handle.current_max_send_streams())
    }

    /// Streams that are there.
    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire) & !RETIRED
    }

    /// No new streams. Those that are there end in peace, then the connection closes.
    pub(super) fn retire(&self) {
        self.streams.fetch_or(RETIRED, Ordering::AcqRel);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.streams.load(Ordering::Acquire) & RETIRED != 0
    }

    /// Since when there is no stream.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.streams.load(Ordering::Acquire) == 0;
        is_idle.then(|| *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Retires it unless somebody was faster with a request.
    pub(super) fn retire_idle(&self) -> bool {
        self.streams.compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

// === impl Permit ===

impl Permit {
    /// The connection is of no use to others: it refused this stream.
    pub(super) fn retire(&self) {
        self.connection.retire();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.connection.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Driver ===

impl Driver {
    /// Runs the connection to its end.
    pub(super) async fn run(self) -> End {
        let Self { mut connection, turns, pings } = self;
        tokio::select! {
            ended = poll_fn(|cx| turns.poll(cx, |cx| Pin::new(&mut connection).poll(cx))) => match ended {
                Ok(()) => End::Closed,
                Err(error) if error.reason() == Some(h2::Reason::NO_ERROR) => End::Closed,
                Err(error) => End::Broken(error),
            },
            lost = keepalive(pings, |_| ()) => match lost {
                PeerLost::Ended(error) => End::Broken(error),
                lost @ PeerLost::Silent => End::Silent(lost),
            },
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_frame_size(limits::MAX_FRAME)
        .max_header_list_size(limits::MAX_HEADER_LIST)
        .max_send_buffer_size(limits::MAX_SEND_BUFFER)
        .initial_max_send_streams(limits::EXPECTED_STREAMS)
        .enable_push(false)
        // What is unread is bounded by the budget that all connections share, per stream.
        .data_frame_budget(usize::MAX)
        .max_concurrent_reset_streams(limits::REMEMBERED_RESETS)
        // Late frames of forgotten streams count as errors; they must not end everybody's connection.
        .max_local_error_reset_streams(None);
    builder
}
