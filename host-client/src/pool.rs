//! The HTTP/2 connections to one address for one class of requests.
//!
//! A request uses the first connection with a free stream. If there is none, it waits for a connection that is being
//! opened, and opens another one if those are reserved. It never waits until another request ends. A separate task
//! opens each connection, so that a client that disconnects does not cancel it for others that wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ops::drain::Tasks;
use ops::files::Watched;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument, debug, info_span, warn};

use super::connection::{Connection, End, Permit};
use super::counters::Counters;
use super::dial::{Dial, Version};
use super::error::{ConnectError, ConnectReason};
use super::health::Health;
use super::limits;
use super::readiness::ready;
use kubeconfig::Address;
use kubeconfig::Bearer;

/// The state that the connections of an address share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) address: Address,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) health: Arc<Health>,
    /// The bearer token for probes.
    pub(super) bearer: Option<Watched<Bearer>>,
    pub(super) counters: Arc<Counters>,
    pub(super) tasks: Tasks,
}

/// One pool. Clones share their state.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

/// The limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The number of idle connections that are kept open.
    pub(super) warm: usize,
    /// The maximum number of streams on one connection.
    pub(super) streams: usize,
    /// The maximum number of connections.
    pub(super) connections: usize,
}

struct Shared {
    common: Common,
    size: Size,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: Vec<Arc<Connection>>,
    opening: Vec<Opening>,
    /// The number of streams that the newest connection allows.
    expected: Option<usize>,
    /// Whether the pool is retired, because the address is no longer configured.
    closed: bool,
}

struct Opening {
    number: u64,
    purpose: Purpose,
    outcome: watch::Receiver<Option<Outcome>>,
    /// The number of requests that wait for it.
    promised: usize,
}

/// The purpose of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Requests wait for it.
    Requests,
    /// A probe whether the API server is ready. Requests do not wait for it.
    Probe,
}

type Outcome = Result<Arc<Connection>, ConnectReason>;

// === impl Size ===

impl Size {
    /// Requests share connections.
    pub(super) const SHARED: Self =
        Self { warm: 0, streams: limits::MAX_STREAMS, connections: limits::MAX_CONNECTIONS };
    /// Each request has a connection to itself.
    pub(super) const SINGLE: Self = Self { warm: 0, streams: 1, connections: limits::MAX_SINGLE_CONNECTIONS };
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(common: Common, size: Size) -> Self {
        Self(Arc::new(Shared { common, size, state: Mutex::default() }))
    }

    /// A stream on one of the connections.
    pub(super) async fn permit(&self) -> Result<Permit, ConnectError> {
        let failed = |reason| ConnectError { address: self.0.common.address.clone(), reason };
        // Other requests may use up a new connection first. If that happens this often, the API server is at fault.
        for _ in 0..16 {
            let mut outcome = match self.find() {
                Found::Room(permit) => return Ok(permit),
                Found::Opening(outcome) => outcome,
                Found::Full => break,
            };
            let Ok(opened) = outcome.wait_for(Option::is_some).await.map(|opened| opened.clone()) else {
                return Err(failed(ConnectReason::Stopping));
            };
            if let Some(permit) = opened.expect("it was waited for").map_err(failed)?.permit(self.0.size.streams) {
                return Ok(permit);
            }
        }
        Err(failed(ConnectReason::Full))
    }

    /// Opens a connection to check whether the API server is ready, unless one is already being opened. No request
    /// waits for it.
    pub(super) fn probe(&self) {
        let mut state = self.lock();
        if state.opening.is_empty() {
            self.open(&mut state, Purpose::Probe);
        }
    }

    /// Removes connections that have ended, and idle ones that are not needed. With `all`, removes every idle one.
    pub(super) fn tend(&self, now: Instant, all: bool) {
        let mut state = self.lock();
        let mut surplus = state.connections.len().saturating_sub(if all { 0 } else { self.0.size.warm });
        // Close the newest first, because requests use the oldest first.
        let mut index = state.connections.len();
        while index > 0 {
            index -= 1;
            let connection = &state.connections[index];
            let is_over = connection.is_retired();
            let is_idle = connection.idle_since().is_some_and(|since| all || now >= since + limits::IDLE_TIMEOUT);
            if is_over || (surplus > 0 && is_idle && connection.retire_idle()) {
                state.connections.remove(index);
                surplus = surplus.saturating_sub(1);
            }
        }
    }

    /// Removes every connection. Current streams continue to their end, and new ones use other connections.
    pub(super) fn retire(&self) {
        for connection in self.lock().connections.drain(..) {
            connection.retire();
        }
    }

    /// Retires the pool. Connections that are still being opened are not kept either.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.retire();
    }

    /// The number of connections that accept requests, and of the streams on them.
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        let streams = state.connections.iter().map(|connection| connection.streams()).sum();
        (state.connections.len(), streams)
    }

    fn find(&self) -> Found {
        let mut state = self.lock();
        state.connections.retain(|connection| !connection.is_retired());
        if let Some(permit) = state.connections.iter().find_map(|connection| connection.permit(self.0.size.streams)) {
            return Found::Room(permit);
        }
        let expected = state.expected.unwrap_or(limits::usable(limits::EXPECTED_STREAMS)).min(self.0.size.streams);
        if let Some(opening) = state.opening.iter_mut().find(|opening| opening.has_room(expected)) {
            opening.promised += 1;
            return Found::Opening(opening.outcome.clone());
        }
        if state.connections.len() + state.opening.len() >= self.0.size.connections {
            return Found::Full;
        }
        Found::Opening(self.open(&mut state, Purpose::Requests))
    }

    fn open(&self, state: &mut State, purpose: Purpose) -> watch::Receiver<Option<Outcome>> {
        let (sender, outcome) = watch::channel(None);
        let number = self.0.common.counters.connection_begun();
        state.opening.push(Opening { number, purpose, outcome: outcome.clone(), promised: 1 });
        let span = info_span!(parent: None, "host connection", number, address = %self.0.common.address);
        let task = connect(Arc::clone(&self.0), number, purpose, sender);
        self.0.common.tasks.spawn("host connection", task.instrument(span));
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// The state of the pool for a request.
enum Found {
    Room(Permit),
    Opening(watch::Receiver<Option<Outcome>>),
    Full,
}

// === impl Opening ===

impl Opening {
    fn has_room(&self, expected: usize) -> bool {
        self.purpose == Purpose::Requests && self.promised < expected
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens and drives a connection. It does not keep the pool alive while the connection runs.
async fn connect(shared: Arc<Shared>, number: u64, purpose: Purpose, sender: watch::Sender<Option<Outcome>>) {
    // If this is dropped at the deadline of a drain, the receivers see that the sender was dropped.
    let common = shared.common.clone();
    let opened = match common.dial.dial(&common.address, Version::Http2).await {
        Ok(io) => Connection::open(io).await,
        Err(reason) => Err(reason),
    };
    let opened = match (opened, purpose) {
        (Ok((connection, mut driver)), Purpose::Probe) => {
            let bearer = common.bearer.as_ref().map(Watched::borrow);
            let checked = ready(&common.address, bearer.as_deref(), &connection, &mut driver).await;
            checked.map(|()| (connection, driver))
        }
        (opened, _) => opened,
    };
    let (outcome, driver) = match opened {
        Ok((connection, driver)) => (Ok(Arc::new(connection)), Some(driver)),
        Err(reason) => (Err(reason), None),
    };
    report(&common, outcome.as_ref().err());
    {
        let mut state = shared.lock();
        state.opening.retain(|opening| opening.number != number);
        if let Ok(connection) = &outcome {
            state.expected = Some(connection.usable());
            if !state.closed {
                state.connections.push(Arc::clone(connection));
            }
        }
    }
    drop(shared);
    let connection = outcome.as_ref().map_or_else(|_| Weak::new(), Arc::downgrade);
    sender.send_replace(Some(outcome));
    drop(sender);
    let Some(driver) = driver else { return };
    let _open = common.counters.connection_open();
    let end = driver.run().await;
    if let Some(connection) = connection.upgrade() {
        connection.retire();
    }
    match end {
        End::Closed => debug!("the connection has ended"),
        End::Broken(error) => debug!(%error, "the connection broke"),
        End::Silent(lost) => {
            warn!(%lost, "the API server no longer responds");
            common.health.failed(Instant::now());
        }
    }
}

fn report(common: &Common, failure: Option<&ConnectReason>) {
    let now = Instant::now();
    match failure {
        Some(reason) => {
            common.counters.connection_failed();
            if common.health.failed(now) {
                warn!(%reason, "the API server is down");
            } else {
                debug!(%reason, "the API server is still down");
            }
        }
        None if common.health.works(now) => tracing::info!("the API server is up again"),
        None => {}
    }
}
