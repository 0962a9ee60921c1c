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
use kube_wire::Status;
use rewrite::sink::Coalesce;
use rewrite::view::{Arrived, Beginning, StreamError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::PollSemaphore;
use tracing::debug;
use tunnel::Reservation;

use super::arrivals::{Arrivals, Wait};
use super::events::Events;
use super::mapped_frames::MappedFrames;
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
    /// For a watch that a feed serves: its chunks are whole frames, or pieces of frames.
    mapped_frames: Option<Arc<MappedFrames>>,
    pending: Option<Pending>,
    /// The time until which events of the last chunk wait for names, if one has waited.
    deadline: Option<Instant>,
    large_objects: Arc<LargeObjectLimits>,
    turn: PollSemaphore,
    /// Ends when the cluster's watches may work on this chunk of a long event.
    slot: Option<Pin<Box<Sleep>>>,
    apart: Option<Apart>,
    charge: Reservation,
}

/// What has not been mapped.
enum Pending {
    /// A chunk of the host.
    Chunk(Bytes),
    /// An event that waits for names, and what has arrived after it.
    Names(Wait),
    /// The same, and it waits no longer.
    Resumed,
}

/// The work of another thread.
type Apart = Pin<Box<dyn Future<Output = (Events, Result<Mapped, StreamError>)> + Send>>;

/// What the engine reports about a chunk, and the bytes for the client.
struct Mapped {
    arrived: Arrived,
    pieces: Vec<Bytes>,
}

/// Why a watch must end.
pub(super) enum WatchError {
    /// There is no memory for an event.
    Exhausted,
    /// The agent could not parse the host's bytes.
    Stream(StreamError),
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(
        events: Events,
        arrivals: Arrivals,
        beginning: Option<Beginning>,
        mapped_frames: Option<Arc<MappedFrames>>,
    ) -> Self {
        let cluster = arrivals.cluster();
        let (large_objects, charge) =
            (Arc::clone(&cluster.lasting.large_objects), cluster.lasting.memory.watches.nothing());
        let (events, bookmarks) = match beginning {
            Some(beginning) => (events.beginning_with(beginning), Some(Bookmarks::new())),
            None => (events, None),
        };
        let turn = PollSemaphore::new(large_objects.frames());
        let (events, arrivals) = (Some(events), Box::new(arrivals));
        let (pending, deadline, slot, apart) = (None, None, None, None);
        Self { events, arrivals, bookmarks, mapped_frames, pending, deadline, large_objects, turn, slot, apart, charge }
    }

    /// Takes a chunk of the host, which [`poll`](Self::poll) maps.
    pub(super) fn hold(&mut self, chunk: Bytes) {
        self.pending = Some(Pending::Chunk(chunk));
        self.deadline = None;
    }

    /// Whether there is something that has not been mapped.
    pub(super) fn is_holding(&self) -> bool {
        self.apart.is_some() || self.pending.is_some()
    }

    /// The agent's next bookmark, when it is due. Its version does not include events that wait for their names,
    /// because the client has not seen them.
    pub(super) fn poll_bookmark(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.apart.is_some() || matches!(self.pending, Some(Pending::Chunk(_) | Pending::Resumed)) {
            // It waits for the turn. If a bookmark were sent now to a client that does not read, this watch would not
            // use its turn, and the other watches would wait.
            return Poll::Pending;
        }
        let Some(bookmarks) = &mut self.bookmarks else { return Poll::Pending };
        bookmarks.poll_due(cx).map(|()| self.events.as_ref().and_then(Events::bookmark))
    }

    /// The last event, when the client has to list again because of events that were left out.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // While another thread works on the events, it is not known where the last one ends.
        if self.events.is_none() {
            return Poll::Pending;
        }
        let why = ready!(self.arrivals.poll_late(cx));
        debug!(?why, "watch ended: events were left out");
        // A slow client must not hold the turn until it has read the end.
        self.leave_queue();
        let end = Status::expired(why.message());
        Poll::Ready(self.events.as_ref().and_then(|events| events.error(&end)))
    }

    /// Maps what is pending, up to an event that waits for names, and in its turn if the event is long.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Coalesce,
        shown: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), WatchError>> {
        if self.apart.is_none() {
            ready!(self.poll_names(cx));
            let is_long = self.length() > LARGE_LENGTH;
            if is_long {
                ready!(self.poll_slot(cx));
            }
            if let Some(reused) = self.reuse(shown) {
                return Poll::Ready(reused);
            }
            let permit = if is_long { ready!(self.turn.poll_acquire(cx)) } else { None };
            // Another watch may have mapped it in its turn.
            if permit.is_some()
                && let Some(reused) = self.reuse(shown)
            {
                return Poll::Ready(reused);
            }
            if let Some(mapped) = self.map_here_or_apart(permit, out, shown) {
                return Poll::Ready(mapped);
            }
        }
        self.poll_apart(cx, shown)
    }

    /// Waits for the names for which an event waits, if one does.
    fn poll_names(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(Pending::Names(wait)) = &mut self.pending else { return Poll::Ready(()) };
        let are_known = ready!(wait.poll(cx));
        if let Some(Pending::Names(wait)) = self.pending.replace(Pending::Resumed)
            && !are_known
            && let Some(events) = &mut self.events
        {
            events.give_up();
            self.arrivals.miss(wait.into_hiding());
        }
        Poll::Ready(())
    }

    /// Reuses the result of another watch, if that watch has mapped the pending chunk in the same way.
    fn reuse(&mut self, shown: &mut VecDeque<Bytes>) -> Option<Result<(), WatchError>> {
        let (Some(Pending::Chunk(chunk)), Some(events)) = (&self.pending, &mut self.events) else { return None };
        let mapped_frames = self.mapped_frames.as_ref()?;
        events.remap(self.arrivals.mapping());
        let mapped = mapped_frames.get(chunk, events.showing()?)?;
        let (counted, is_long) = (events.count(chunk, !mapped.is_empty()), chunk.len() > LARGE_LENGTH);
        (self.pending, self.slot) = (None, None);
        if is_long {
            self.leave_queue();
        }
        shown.extend(mapped.iter().cloned());
        Some(counted.map_err(WatchError::Stream).and_then(|()| self.mapped(Arrived::default(), shown)))
    }

    /// The watch needs no turn any more. A semaphore grants permits to those who have asked for them, whether they still poll or
    /// not, so this watch would keep the turn, and the cluster's other watches would wait for it.
    fn leave_queue(&mut self) {
        self.turn = PollSemaphore::new(self.large_objects.frames());
    }

    /// Waits until the cluster's watches may work on this chunk of a long event.
    fn poll_slot(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let bytes = match &self.pending {
            Some(Pending::Chunk(chunk)) => chunk.len(),
            _ => self.held(),
        };
        let slot = self.slot.get_or_insert_with(|| Box::pin(sleep_until(self.large_objects.slot(bytes))));
        slot.as_mut().poll(cx)
    }

    /// Maps what is pending. Returns `None` if another thread does so, because the event is too long for this one.
    fn map_here_or_apart(
        &mut self,
        permit: Option<OwnedSemaphorePermit>,
        out: &mut Coalesce,
        shown: &mut VecDeque<Bytes>,
    ) -> Option<Result<(), WatchError>> {
        let length = self.length();
        self.slot = None;
        let chunk = match self.pending.take() {
            Some(Pending::Chunk(chunk)) => Some(chunk),
            _ => None,
        };
        let mut events = self.events.take().expect("no other thread works on them");
        // A watch outlives many namespaces.
        events.remap(self.arrivals.mapping());
        if LargeObjectLimits::is_for_another_thread(length)
            && chunk.as_ref().is_none_or(|chunk| events.may_end_in(chunk))
        {
            let mapped_frames = self.mapped_frames.clone();
            self.apart = Some(Box::pin(self.large_objects.apart(move || {
                let read = read(&mut events, chunk, &mut Coalesce::new(), mapped_frames.as_deref());
                // The next watch in turn finds what this one has mapped.
                drop(permit);
                (events, read)
            })));
            return None;
        }
        let mapped_frames = self.mapped_frames.as_deref();
        let read = match permit {
            Some(_permit) => self.large_objects.run(|| read(&mut events, chunk, out, mapped_frames)),
            None => read(&mut events, chunk, out, mapped_frames),
        };
        self.events = Some(events);
        Some(self.finish(read, shown))
    }

    /// Waits for the other thread.
    fn poll_apart(&mut self, cx: &mut Context<'_>, shown: &mut VecDeque<Bytes>) -> Poll<Result<(), WatchError>> {
        let Some(apart) = &mut self.apart else { return Poll::Ready(Ok(())) };
        let (events, read) = ready!(apart.as_mut().poll(cx));
        (self.events, self.apart) = (Some(events), None);
        Poll::Ready(self.finish(read, shown))
    }

    /// Takes the result for a chunk.
    fn finish(&mut self, read: Result<Mapped, StreamError>, shown: &mut VecDeque<Bytes>) -> Result<(), WatchError> {
        let Mapped { arrived, pieces } = read.map_err(WatchError::Stream)?;
        shown.extend(pieces);
        self.mapped(arrived, shown)
    }

    /// Something has been mapped.
    fn mapped(&mut self, arrived: Arrived, shown: &VecDeque<Bytes>) -> Result<(), WatchError> {
        if let Some(bookmarks) = self.bookmarks.as_mut().filter(|_| !arrived.bookmarks.is_empty()) {
            bookmarks.delay();
        }
        if !arrived.unknown.is_empty() {
            let until = *self.deadline.get_or_insert_with(Wait::deadline);
            self.pending = Some(Pending::Names(self.arrivals.wait(arrived, until)));
        }
        if self.charge(shown) { Ok(()) } else { Err(WatchError::Exhausted) }
    }

    /// The length of the pending event so far, in bytes.
    fn length(&self) -> usize {
        match &self.pending {
            Some(Pending::Chunk(chunk)) => self.held() + chunk.len(),
            _ => self.held(),
        }
    }

    /// The bytes of events that are incomplete, or that wait.
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
        let held = self.held() + shown.iter().map(Bytes::len).sum::<usize>();
        let held = if held > UNCHARGED { held } else { 0 };
        let charged = self.charge.units();
        drop(self.charge.split(charged.saturating_sub(held)));
        self.charge.grow(held.saturating_sub(charged))
    }
}

/// Reads a chunk, or the events that no longer wait. If the chunk is a frame, other watches can reuse the result.
fn read(
    events: &mut Events,
    chunk: Option<Bytes>,
    out: &mut Coalesce,
    mapped_frames: Option<&MappedFrames>,
) -> Result<Mapped, StreamError> {
    let Some(chunk) = chunk else {
        let arrived = events.resume(out)?;
        return Ok(Mapped { arrived, pieces: out.drain().collect() });
    };
    let began = events.showing().is_some();
    let arrived = events.read(&chunk, out)?;
    let pieces: Vec<Bytes> = out.drain().collect();
    // A feed sends at most one frame in a chunk.
    let is_one_frame = began && events.showing().is_some() && arrived.bookmarks.is_empty();
    // What another watch shows of unknown names depends on how long it has waited for them.
    if let (Some(mapped_frames), Some(showing)) = (mapped_frames, events.showing())
        && is_one_frame
        && !arrived.has_unknown
    {
        mapped_frames.put(chunk, showing, &pieces);
    }
    Ok(Mapped { arrived, pieces })
}
