//! The HTTP/2 connections to one address for one class of requests.
//!
//! A request takes the first connection with room; if there is none, it waits for one that is being opened, and opens
//! another when those are spoken for. It never waits for somebody else's request to end. Opening is a task of its own:
//! a client that leaves does not take the connection away from those that wait with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ops::drain::Tasks;
use ops::files::Watched;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument, debug, info_span, warn};

use super::address::Address;
use super::bearer::Bearer;
use super::connection::{Connection, End, Permit};
use super::counters::Counters;
use super::dial::{Dial, Version};
use super::error::{ConnectError, ConnectReason};
use super::health::Health;
use super::limits;
use super::readiness::ready;

/// What the connections of an address have in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) address: Address,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) health: Arc<Health>,
    /// For probes.
    pub(super) bearer: Option<Watched<Bearer>>,
    pub(super) counters: Arc<Counters>,
    pub(super) tasks: Tasks,
}

/// One pool. Clones are the same.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    common: Common,
    /// Connections that are kept though nothing uses them.
    warm: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: Vec<Arc<Connection>>,
    opening: Vec<Opening>,
    /// What the newest connection takes.
    expected: Option<usize>,
    /// Nothing is kept any more: the address is no longer configured.
    closed: bool,
}

struct Opening {
    number: u64,
    purpose: Purpose,
    outcome: watch::Receiver<Option<Outcome>>,
    /// Requests that wait for it.
    promised: usize,
}

/// What a connection is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Requests wait for it.
    Requests,
    /// To see whether the API server is ready; requests do not wait for that.
    Probe,
}

type Outcome = Result<Arc<Connection>, ConnectReason>;

// === impl Pool ===

impl Pool {
    pub(super) fn new(common: Common, warm: usize) -> Self {
        Self(Arc::new(Shared { common, warm, state: Mutex::default() }))
    }

    /// A stream on some connection.
    pub(super) async fn permit(&self) -> Result<Permit, ConnectError> {
        let failed = |reason| ConnectError { address: self.0.common.address.clone(), reason };
        // Others may be faster when a connection opens; not so often that it is not the API server's fault.
        for _ in 0..16 {
            let mut outcome = match self.find() {
                Found::Room(permit) => return Ok(permit),
                Found::Opening(outcome) => outcome,
                Found::Full => break,
            };
            let Ok(opened) = outcome.wait_for(Option::is_some).await.map(|opened| opened.clone()) else {
                return Err(failed(ConnectReason::Stopping));
            };
            if let Some(permit) = opened.expect("it was waited for").map_err(failed)?.permit() {
                return Ok(permit);
            }
        }
        Err(failed(ConnectReason::Full))
    }

    /// Opens a connection that nobody waits for, to see whether the API server is ready, unless one is being opened.
    pub(super) fn probe(&self) {
        let mut state = self.lock();
        if state.opening.is_empty() {
            self.open(&mut state, Purpose::Probe);
        }
    }

    /// Lets go of connections that are over, and of those that were idle too long and are not kept warm; of every idle
    /// one if `all`.
    pub(super) fn tend(&self, now: Instant, all: bool) {
        let mut state = self.lock();
        let mut surplus = state.connections.len().saturating_sub(if all { 0 } else { self.0.warm });
        // The newest first: requests are packed into the oldest.
        let mut index = state.connections.len();
        while index > 0 {
            index -= 1;
            let connection = &state.connections[index];
            let is_over = connection.is_retired();
            let is_idle = connection.idle_since().is_some_and(|since| all || now >= since + limits::IDLE);
            if is_over || (surplus > 0 && is_idle && connection.retire_idle()) {
                state.connections.remove(index);
                surplus = surplus.saturating_sub(1);
            }
        }
    }

    /// Lets go of every connection: the streams that are there end in peace, new ones go elsewhere.
    pub(super) fn retire(&self) {
        for connection in self.lock().connections.drain(..) {
            connection.retire();
        }
    }

    /// Retires, and keeps nothing that is still being opened.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.retire();
    }

    /// Connections that take requests, and the streams on them.
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        let streams = state.connections.iter().map(|connection| connection.streams()).sum();
        (state.connections.len(), streams)
    }

    fn find(&self) -> Found {
        let mut state = self.lock();
        state.connections.retain(|connection| !connection.is_retired());
        if let Some(permit) = state.connections.iter().find_map(Connection::permit) {
            return Found::Room(permit);
        }
        let expected = state.expected.unwrap_or(limits::usable(limits::EXPECTED_STREAMS));
        if let Some(opening) = state.opening.iter_mut().find(|opening| opening.has_room(expected)) {
            opening.promised += 1;
            return Found::Opening(opening.outcome.clone());
        }
        if state.connections.len() + state.opening.len() >= limits::MOST_CONNECTIONS {
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

/// What a request finds.
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

/// A connection's whole life. It does not keep the pool alive while the connection runs.
async fn connect(shared: Arc<Shared>, number: u64, purpose: Purpose, sender: watch::Sender<Option<Outcome>>) {
    // Dropped half-way, at the deadline of a drain: the receivers see that the sender is gone.
    let common = shared.common.clone();
    let opened = match common.dial.dial(&common.address, Version::Http2).await {
        Ok(io) => Connection::open(io).await,
        Err(reason) => Err(reason),
    };
    let opened = match (opened, purpose) {
        (Ok((connection, mut driver)), Purpose::Probe) => {
            ready(&common, &connection, &mut driver).await.map(|()| (connection, driver))
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
        End::Closed => debug!("closed"),
        End::Broken(error) => debug!(%error, "broken"),
        End::Silent(lost) => {
            warn!(%lost, "the API server fell silent");
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
                warn!(%reason, "API server down");
            } else {
                debug!(%reason, "API server still down");
            }
        }
        None if common.health.works(now) => tracing::info!("API server up again"),
        None => {}
    }
}
