//! The memory that one tunnel may hold for readers that do not read.
//!
//! The connection window is as large as HTTP/2 allows, so that only stream windows bind and a stalled reader costs its
//! own stream. The price is that a tunnel could buffer `streams x window`. The budget is the bound: a sweep looks at
//! every stream that is older than one tick, takes unread frames out of `h2` (where tiny ones cost far more than their
//! bytes) and packs them, and if all of it together is over the limit, resets the stream that holds most.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::inbound::Slot;

/// How often the streams are looked at. Short enough that a peer cannot pile up much in between, long enough that a
/// thousand idle watches cost nothing.
const TICK: Duration = Duration::from_millis(250);

/// One tunnel's budget. Cheap to share; every [`crate::Inbound`] of the tunnel is born with it.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    slots: Mutex<Vec<Weak<Slot>>>,
    first: Notify,
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Bytes held unread by all streams, after resets.
    pub held: usize,
    /// Streams reset by this sweep.
    pub reset: usize,
    /// Streams that live.
    pub streams: usize,
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

    /// Sweeps for as long as the tunnel lives; the caller drops the future with the tunnel. Sleeps while there is no
    /// stream. `report` is called after every sweep that reset a stream.
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

    /// One look at every stream.
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
        if sweep.held > self.limit {
            held.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
            for (bytes, slot) in held {
                if sweep.held <= self.limit {
                    break;
                }
                slot.evict();
                sweep.held -= bytes;
                sweep.reset += 1;
            }
        }
        sweep
    }
}
