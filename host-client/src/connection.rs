//! One HTTP/2 connection to an API server.
//!
//! This uses `h2` directly. Its budget for small frames (new in 0.4.16) counts unread events of all watches of a
//! connection together, and ends the connection after a hundred of them. A client library does not expose this setting.
//! Streams are counted here until their response bodies end, so that a request never waits behind watches.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::Ping;
use h2::client::{Builder, SendRequest};
use http::{Request, StatusCode};
use tokio::time::{Instant, timeout};
use tunnel::keepalive::{Intervals, PeerLost, keepalive};
use tunnel::{Batched, Turns};

use super::dial::BoxIo;
use super::error::{ConnectReason, Stage};
use super::limits;

/// A connection that accepts requests. It stays open as long as this or one of its [`Permit`]s exists.
pub(super) struct Connection {
    handle: SendRequest<Bytes>,
    /// The number of streams, and the bit [`RETIRED`].
    streams: AtomicUsize,
    idle_since: Mutex<Instant>,
}

/// The right to one stream, until it is dropped.
pub(super) struct Permit {
    connection: Arc<Connection>,
    pub(super) handle: SendRequest<Bytes>,
}

/// Drives the connection until it ends.
pub(super) struct Driver {
    connection: h2::client::Connection<Batched<BoxIo>, Bytes>,
    turns: Turns<BoxIo>,
    pings: h2::PingPong,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// Normally: closed by this process, or after GOAWAY.
    Closed,
    /// By an error.
    Broken(h2::Error),
    /// The API server no longer responds, and would not respond on a new connection either.
    Silent(PeerLost),
}

/// The bit that forbids new streams.
const RETIRED: usize = 1 << (usize::BITS - 1);

// === impl Connection ===

impl Connection {
    /// Begins HTTP/2, and waits for the response to a first ping. It shows that the API server is alive, and that its
    /// SETTINGS with the maximum number of streams have arrived, which come first (RFC 9113 section 3.4).
    pub(super) async fn open(io: BoxIo) -> Result<(Self, Driver), ConnectReason> {
        timeout(limits::HANDSHAKE_TIMEOUT, Self::handshake(io))
            .await
            .map_err(|_| ConnectReason::Silent(Stage::Http))?
            .map_err(|error| ConnectReason::Http(error.to_string().into()))
    }

    async fn handshake(io: BoxIo) -> Result<(Self, Driver), h2::Error> {
        let (io, turns) = Batched::new(io);
        let (handle, mut connection) = builder().handshake(io).await?;
        let mut pings = connection.ping_pong().expect("it is taken only here");
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

    /// Sends one request before the connection is used by others, and returns the status of the response.
    pub(super) async fn request(&self, driver: &mut Driver, request: Request<()>) -> Result<StatusCode, h2::Error> {
        let (response, _) = self.handle.clone().send_request(request, true)?;
        tokio::select! {
            ended = &mut driver.connection => {
                ended?;
                Err(h2::Reason::NO_ERROR.into())
            }
            response = response => Ok(response?.status()),
        }
    }

    /// A stream, if there are fewer than `most`, and room for one.
    pub(super) fn permit(self: &Arc<Self>, most: usize) -> Option<Permit> {
        let most = self.usable().min(most);
        let taken = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, |streams| {
            // The count of a retired connection exceeds any limit.
            (streams < most).then_some(streams + 1)
        });
        taken.ok()?;
        let mut permit = Permit { connection: Arc::clone(self), handle: self.handle.clone() };
        // This is never pending, because no stream of this handle waits to be opened. An error is a GOAWAY or a broken
        // connection.
        let ready = permit.handle.poll_ready(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(_)) = ready {
            self.retire();
            return None;
        }
        Some(permit)
    }

    /// The number of streams that the API server allows, less a margin.
    pub(super) fn usable(&self) -> usize {
        limits::usable(self.handle.current_max_send_streams())
    }

    /// The number of current streams.
    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire) & !RETIRED
    }

    /// Retires the connection: it accepts no new streams, and closes when its current streams have ended.
    pub(super) fn retire(&self) {
        self.streams.fetch_or(RETIRED, Ordering::AcqRel);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.streams.load(Ordering::Acquire) & RETIRED != 0
    }

    /// The time since which it has had no stream.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.streams.load(Ordering::Acquire) == 0;
        is_idle.then(|| *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Retires it if it is still idle.
    pub(super) fn retire_idle(&self) -> bool {
        self.streams.compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

// === impl Permit ===

impl Permit {
    /// Marks the connection as unusable for new requests, because it refused this stream.
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
            // Without a count of bytes, it pings every 10.5 s. The network to the host is not paid by the byte.
            lost = keepalive(pings, Intervals::DIALLED, |_| (), || 0) => match lost {
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
        // The budget that all connections share bounds unread data, per stream.
        .data_frame_budget(usize::MAX)
        .max_concurrent_reset_streams(limits::REMEMBERED_RESETS)
        // Late frames of forgotten streams count as errors. They must not end a connection that others use.
        .max_local_error_reset_streams(None);
    builder
}
