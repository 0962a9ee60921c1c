//! A watch that is streamed to a client.
//!
//! Each event is sent as soon as it is complete, so a watch has one event in memory. But if an object of a megabyte
//! changes, a thousand watches have a thousand such events in memory. So the memory of a cluster's watches is charged,
//! and a watch for which there is no memory ends. Its client continues from the last version that it has seen.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rewrite::sink::Coalesce;
use rewrite::view::{Beginning, StreamError};
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::PollSemaphore;
use tunnel::Reservation;

use super::events::Events;
use crate::translate::arrivals::Arrivals;
use crate::translate::bookmarks::Bookmarks;
use virtual_cluster::share::large_objects::{LARGE_LENGTH, LargeObjectLimits};

/// The memory of a watch that is not charged, in bytes. Most events are shorter.
const UNCHARGED: usize = 16 * 1024;

/// A watch.
pub(super) struct Watch {
    /// `None` while another thread works on them.
    events: Option<Events>,
    arrivals: Box<Arrivals>,
    bookmarks: Option<Bookmarks>,
    /// A chunk whose names are known, and which waits for its turn.
    chunk: Option<Bytes>,
    large_objects: Arc<LargeObjectLimits>,
    turn: PollSemaphore,
    /// Ends when the cluster's watches may work on this chunk of a long event.
    slot: Option<Pin<Box<Sleep>>>,
    apart: Option<Apart>,
    charge: Reservation,
}

/// The work of another thread: it returns the events, and what it has written.
type Apart = Pin<Box<dyn Future<Output = (Events, Result<Vec<Bytes>, StreamError>)> + Send>>;

/// Why a watch must end.
pub(super) enum WatchError {
    /// There is no memory for an event.
    Exhausted,
    /// The agent could not parse the host's bytes.
    Stream(StreamError),
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(events: Events, arrivals: Arrivals, beginning: Option<Beginning>) -> Self {
        let cluster = arrivals.cluster();
        let (large_objects, charge) =
            (Arc::clone(&cluster.lasting.large_objects), cluster.lasting.memory.watches.nothing());
        let (events, bookmarks) = match beginning {
            Some(beginning) => (events.beginning_with(beginning), Some(Bookmarks::new())),
            None => (events, None),
        };
        let turn = PollSemaphore::new(large_objects.frames());
        let arrivals = Box::new(arrivals);
        let events = Some(events);
        Self { events, arrivals, bookmarks, chunk: None, large_objects, turn, slot: None, apart: None, charge }
    }

    /// Takes a chunk of the host, which [`poll`](Self::poll) maps.
    pub(super) fn hold(&mut self, chunk: Bytes) {
        self.arrivals.hold(chunk);
    }

    /// Whether there is a chunk that has not been mapped.
    pub(super) fn is_holding(&self) -> bool {
        self.apart.is_some() || self.chunk.is_some() || self.arrivals.is_holding()
    }

    /// The agent's next bookmark, when it is due. Its version does not include events that wait for their names,
    /// because the client has not seen them.
    pub(super) fn poll_bookmark(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.chunk.is_some() || self.apart.is_some() {
            // It waits for the turn. If a bookmark were sent now to a client that does not read, this watch would not
            // use its turn, and the other watches would wait.
            return Poll::Pending;
        }
        let Some(bookmarks) = &mut self.bookmarks else { return Poll::Pending };
        bookmarks.poll_due(cx).map(|()| self.events.as_ref().and_then(Events::bookmark))
    }

    /// Maps the pending chunk when its names are known, and in its turn if the event is long.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Coalesce,
        shown: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), WatchError>> {
        if let Some(apart) = &mut self.apart {
            let (events, pieces) = ready!(apart.as_mut().poll(cx));
            (self.events, self.apart) = (Some(events), None);
            shown.extend(pieces.map_err(WatchError::Stream)?);
            return Poll::Ready(self.mapped(shown));
        }
        if self.chunk.is_none() {
            self.chunk = ready!(self.arrivals.poll(cx));
        }
        let Some(chunk) = &self.chunk else { return Poll::Ready(Ok(())) };
        let length = self.held() + chunk.len();
        let turn = if length > LARGE_LENGTH {
            let slot = self.slot.get_or_insert_with(|| Box::pin(sleep_until(self.large_objects.slot(chunk.len()))));
            ready!(slot.as_mut().poll(cx));
            ready!(self.turn.poll_acquire(cx))
        } else {
            None
        };
        self.slot = None;
        let chunk = self.chunk.take().expect("there is one");
        let mut events = self.events.take().expect("no other thread works on them");
        events.remap(self.arrivals.mapping());
        if LargeObjectLimits::is_for_another_thread(length) && events.may_end_in(&chunk) {
            self.apart = Some(Box::pin(self.large_objects.apart(move || {
                let (mut out, _turn) = (Coalesce::new(), turn);
                let pushed = events.push(&chunk, &mut out);
                (events, pushed.map(|()| out.drain().collect()))
            })));
            return self.poll(cx, out, shown);
        }
        let pushed = match turn {
            Some(_turn) => self.large_objects.run(|| events.push(&chunk, out)),
            None => events.push(&chunk, out),
        };
        self.events = Some(events);
        pushed.map_err(WatchError::Stream)?;
        shown.extend(out.drain());
        Poll::Ready(self.mapped(shown))
    }

    /// A chunk has been mapped.
    fn mapped(&mut self, shown: &VecDeque<Bytes>) -> Result<(), WatchError> {
        if let Some(bookmarks) = &mut self.bookmarks {
            for shown in shown {
                bookmarks.note(shown);
            }
        }
        if self.charge(shown) { Ok(()) } else { Err(WatchError::Exhausted) }
    }

    /// The bytes of an incomplete event.
    fn held(&self) -> usize {
        self.events.as_ref().map_or(0, Events::held)
    }

    /// Releases the charge of what has been sent.
    pub(super) fn sent(&mut self) {
        if self.charge.units() > 0 {
            // This cannot fail, because the charge does not grow.
            self.charge(&VecDeque::new());
        }
    }

    /// Charges what is held. Returns `false` if there is no room for it.
    fn charge(&mut self, shown: &VecDeque<Bytes>) -> bool {
        // To find the names in protobuf, `arrivals` has a copy of the event.
        let held = self.held() + self.arrivals.held() + shown.iter().map(Bytes::len).sum::<usize>();
        let held = if held > UNCHARGED { held } else { 0 };
        let charged = self.charge.units();
        drop(self.charge.split(charged.saturating_sub(held)));
        self.charge.grow(held.saturating_sub(charged))
    }
}
