//! How many bodies of a tunnel may keep a history.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::history::History;
use super::primed;
use crate::settings::MAX_STREAMS;

/// The maximum number of bodies of a tunnel for which the sender keeps a history. These histories take up to 32 MiB.
const SENDER: usize = 4096;

/// The same for the receiver. The sender drops a history when it has sent the body, but the receiver keeps it until its
/// client has read the body. So each stream of a tunnel may have one: slow clients of one cluster must not affect the
/// bodies of others.
const RECEIVER: usize = MAX_STREAMS as usize;

/// The histories that one end of a tunnel may still keep. Clones share one count.
#[derive(Clone, Debug)]
pub struct Histories {
    left: Arc<AtomicUsize>,
    /// Whether bodies begin with the history [`primed`](super::primed).
    is_primed: bool,
}

/// A body may keep a history until this is dropped.
#[derive(Debug)]
pub(super) struct Permit(Histories);

// === impl Histories ===

impl Histories {
    /// Those of the end that sends bodies.
    pub fn sender() -> Self {
        Self::limited(SENDER)
    }

    /// Those of the end that receives bodies.
    pub fn receiver() -> Self {
        Self::limited(RECEIVER)
    }

    /// Without a limit, for an end that limits the number of bodies.
    pub fn unlimited() -> Self {
        Self::limited(usize::MAX)
    }

    /// Takes a permit if there is none yet, unless there are too many histories. Returns whether there is one.
    pub(super) fn permit(&self, permit: &mut Option<Permit>) -> bool {
        if permit.is_none() {
            let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            *permit = taken.ok().map(|_| Permit(self.clone()));
        }
        permit.is_some()
    }

    /// The same histories for watches, which begin with a dictionary. Both ends must choose the same.
    #[must_use]
    pub fn primed(&self) -> Self {
        Self { left: Arc::clone(&self.left), is_primed: true }
    }

    /// The history of a body that has no bytes yet.
    pub(super) fn initial(&self) -> History {
        if self.is_primed { primed::history() } else { History::default() }
    }

    fn limited(number: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(number)), is_primed: false }
    }

    #[cfg(test)]
    pub(super) fn of(number: usize) -> Self {
        Self::limited(number)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::Relaxed);
    }
}
