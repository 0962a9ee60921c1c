//! All objects, one counter for their versions, and what happened lately.
//!
//! Everything is behind one lock, held only for synchronous work: whoever writes sees what they decide upon, so inside
//! there are no conflicts and no retries. Watches follow the [`Change`]s, of which the last [`MEMORY`] are kept.

mod change;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(crate) use change::{Change, Place};
pub(crate) use state::{State, TooOld};

/// So many changes are remembered: a watch that is further behind has to list again.
const MEMORY: usize = 4096;

/// All objects.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

// === impl Store ===

impl Store {
    pub(crate) fn new() -> Self {
        let state = State::new(MEMORY);
        Self { revision: watch::Sender::new(state.revision()), state: Mutex::new(state) }
    }

    /// Reads, all in one moment.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.lock())
    }

    /// Reads and writes, all in one moment. What was written before an error stays: check first, write last.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = write(&mut state);
        let revision = state.revision();
        drop(state);
        self.revision.send_if_modified(|known| std::mem::replace(known, revision.max(*known)) < revision);
        outcome
    }

    /// Tells when the revision moves on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A write that panicked has stored whole objects or none; the state is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
