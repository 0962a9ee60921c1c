//! All objects, one counter for their versions, and what happened lately.
//!
//! Everything is behind one lock, held only for synchronous work: whoever writes sees what they decide upon, so inside
//! there are no conflicts and no retries. Watches follow the [`Change`]s, of which the last [`MEMORY`] are kept.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use crate::kinds::Kind;
pub(crate) use state::{State, TooOld};

/// So many changes are remembered: a watch that is further behind has to list again.
const MEMORY: usize = 4096;

/// Where an object is, within its kind. Ordered as lists are: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Empty at the cluster scope.
    pub(crate) namespace: String,
    /// The object's name.
    pub(crate) name: String,
}

/// One write, before and after.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The version that it made.
    pub(crate) revision: u64,
    /// What kind of object it was made to.
    pub(crate) kind: &'static Kind,
    /// `None`: it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// The object as it is now; as it last was, with this revision, if it was removed.
    pub(crate) object: Arc<Value>,
    /// Whether it was removed.
    pub(crate) removed: bool,
}

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

// === impl Place ===

impl Place {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}
