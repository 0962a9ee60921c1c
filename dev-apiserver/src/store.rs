//! All objects, their resource versions, and the latest changes.
//!
//! One lock protects everything. It is held only for synchronous work, so a read and the write that depends on it are
//! atomic, and there are no conflicts and retries inside. Watches read the [`Change`]s, of which the last [`LOG_LENGTH`]
//! are kept.

mod change;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(crate) use change::{Change, ObjectKey};
pub(crate) use state::{State, TooOld};

/// The number of changes that are kept. A watch that is further behind gets 410.
const LOG_LENGTH: usize = 4096;

/// All objects.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

// === impl Store ===

impl Store {
    pub(crate) fn new() -> Self {
        let state = State::new(LOG_LENGTH);
        Self { revision: watch::Sender::new(state.revision()), state: Mutex::new(state) }
    }

    /// Reads under the lock.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.lock())
    }

    /// Reads and writes under the lock. An error does not undo writes, so check before you write.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = write(&mut state);
        let revision = state.revision();
        drop(state);
        self.revision.send_if_modified(|known| std::mem::replace(known, revision.max(*known)) < revision);
        outcome
    }

    /// Notifies of new revisions.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A write that panicked has stored only complete objects, so the state is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
