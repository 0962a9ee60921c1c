//! The limit for the unread data of one tunnel, or of several.
//!
//! The connection window is as large as HTTP/2 allows, so that only stream windows apply and a stalled reader blocks
//! only its own stream. Without a limit, a tunnel could buffer `streams x window`. So four times a second while bytes arrive, a
//! sweep takes unread frames out of `h2` and packs them, because in `h2`, tiny frames take far more memory than their length.
//! While the total exceeds the budget, the sweep selects the owner with the most unread bytes, and resets its largest
//! stream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::Owner;
use crate::slot::Slot;

/// The interval between sweeps. It is short enough that a peer cannot send much in between, and long enough that a
/// thousand idle watches cost almost nothing.
const TICK: Duration = Duration::from_millis(250);

/// A tunnel whose bytes are counted is swept after this many, with their frame headers. It may hold fewer in addition to its budget.
const UNSWEPT: u64 = 16 * 1024;

/// The number of streams that have ended and that still take memory, in addition to as many as are open.
const ENDED: usize = 32;

/// The budget of one tunnel, or of several. Every [`crate::Inbound`] of these tunnels is created with it.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    slots: Mutex<Slots>,
    needed: Notify,
    /// The number of bytes that have arrived since the last sweep. `None` if nobody counts them.
    unswept: Option<AtomicU64>,
}

/// The streams, and some that have ended.
#[derive(Debug)]
struct Slots {
    all: Vec<Weak<Slot>>,
    /// The number of streams at which those that have ended are removed.
    prune_at: usize,
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The unread bytes of all streams, after resets.
    pub held: usize,
    /// The number of streams that this sweep reset.
    pub reset: usize,
    /// The number of open streams before resets.
    pub streams: usize,
}

/// The streams of one [owner](Owner). The one with the most unread bytes is the last.
#[derive(Default)]
struct Owned<'a> {
    held: usize,
    slots: Vec<(usize, &'a Arc<Slot>)>,
}

// === impl Budget ===

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, slots: Mutex::default(), needed: Notify::new(), unswept: None })
    }

    /// A budget of one tunnel whose owner calls [`received`](Self::received), so that an idle tunnel costs no CPU time.
    pub fn metered(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, slots: Mutex::default(), needed: Notify::new(), unswept: Some(AtomicU64::new(0)) })
    }

    /// Counts bytes that have arrived through the tunnel.
    pub fn received(&self, bytes: u64) {
        if let Some(unswept) = &self.unswept {
            let before = unswept.fetch_add(bytes, Ordering::Relaxed);
            if before < UNSWEPT && before + bytes >= UNSWEPT {
                self.needed.notify_one();
            }
        }
    }

    pub(crate) fn admit(&self, slot: &Arc<Slot>) {
        let mut slots = self.lock();
        slots.all.push(Arc::downgrade(slot));
        if slots.all.len() >= slots.prune_at {
            slots.prune();
        }
        if self.unswept.is_none() && slots.all.len() == 1 {
            self.needed.notify_one();
        }
    }

    /// Sweeps for ever. The caller drops the future with the last tunnel. Does nothing while there are no streams, or while
    /// few bytes arrive. `report` is called after every sweep that reset a stream.
    pub async fn keep(&self, mut report: impl FnMut(Sweep)) {
        loop {
            while !self.is_needed() {
                self.needed.notified().await;
            }
            tokio::time::sleep(TICK).await;
            if let Some(unswept) = &self.unswept {
                unswept.store(0, Ordering::Relaxed);
            }
            let sweep = self.sweep();
            if sweep.reset > 0 {
                report(sweep);
            }
        }
    }

    fn is_needed(&self) -> bool {
        match &self.unswept {
            Some(unswept) => unswept.load(Ordering::Relaxed) >= UNSWEPT,
            None => !self.lock().all.is_empty(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sweeps once over all streams.
    pub fn sweep(&self) -> Sweep {
        let alive = self.lock().prune();
        let mut held: Vec<(usize, &Arc<Slot>)> = alive.iter().map(|slot| (slot.absorb(), slot)).collect();
        let mut sweep = Sweep { held: held.iter().map(|(bytes, _)| bytes).sum(), reset: 0, streams: alive.len() };
        if sweep.held <= self.limit {
            return sweep;
        }
        held.sort_unstable_by_key(|(bytes, _)| *bytes);
        let mut owners: HashMap<Owner, Owned<'_>> = HashMap::new();
        for (bytes, slot) in held {
            let owner = owners.entry(slot.owner()).or_default();
            owner.held += bytes;
            owner.slots.push((bytes, slot));
        }
        while sweep.held > self.limit
            && let Some(owner) = owners.values_mut().max_by_key(|owner| owner.held)
            && let Some((bytes, slot)) = owner.slots.pop()
        {
            slot.evict();
            owner.held -= bytes;
            sweep.held -= bytes;
            sweep.reset += 1;
        }
        sweep
    }
}

// === impl Slots ===

impl Slots {
    /// Removes those that have ended, and returns the others.
    fn prune(&mut self) -> Vec<Arc<Slot>> {
        let mut alive = Vec::new();
        self.all.retain(|slot| slot.upgrade().map(|slot| alive.push(slot)).is_some());
        self.prune_at = 2 * alive.len() + ENDED;
        alive
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self { all: Vec::new(), prune_at: ENDED }
    }
}
