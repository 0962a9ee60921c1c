//! The limit for the unread data of one tunnel, or of several.
//!
//! The connection window is as large as HTTP/2 allows, so that only stream windows apply and a stalled reader blocks
//! only its own stream. Without a limit, a tunnel could buffer `streams x window`. So four times a second, a sweep
//! takes unread frames out of `h2` and packs them, because in `h2`, tiny frames take far more memory than their length.
//! While the total exceeds the budget, the sweep selects the owner with the most unread bytes, and resets its largest
//! stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::Owner;
use crate::slot::Slot;

/// The interval between sweeps. It is short enough that a peer cannot send much in between, and long enough that a
/// thousand idle watches cost almost nothing.
const TICK: Duration = Duration::from_millis(250);

/// The budget of one tunnel, or of several. Every [`crate::Inbound`] of these tunnels is created with it.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    slots: Mutex<Vec<Weak<Slot>>>,
    first: Notify,
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
        Arc::new(Self { limit, slots: Mutex::default(), first: Notify::new() })
    }

    pub(crate) fn admit(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push(Arc::downgrade(slot));
        if slots.len() == 1 {
            self.first.notify_one();
        }
    }

    /// Sweeps for ever. The caller drops the future with the last tunnel. Does nothing while there are no streams. `report`
    /// is called after every sweep that reset a stream.
    pub async fn keep(&self, mut report: impl FnMut(Sweep)) {
        loop {
            if self.slots.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                self.first.notified().await;
            }
            tokio::time::sleep(TICK).await;
            let sweep = self.sweep();
            if sweep.reset > 0 {
                report(sweep);
            }
        }
    }

    /// Sweeps once over all streams.
    pub fn sweep(&self) -> Sweep {
        let alive: Vec<Arc<Slot>> = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let mut alive = Vec::new();
            slots.retain(|slot| match slot.upgrade() {
                Some(slot) => {
                    alive.push(slot);
                    true
                }
                None => false,
            });
            alive
        };
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
