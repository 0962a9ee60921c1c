//! The bytes that may wait in all queues together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of bytes of one queue.
pub(crate) const MAX_OF_QUEUE: usize = 32 * 1024 * 1024;

/// The bytes that each queue has for itself. Only what exceeds them counts for all queues, so a busy cluster leaves others room.
const OWN: usize = 256 * 1024;

/// The maximum of what all queues share, and the part of the machine's memory that it is.
const MAX_SHARED: usize = 256 * 1024 * 1024;
const PART_OF_MEMORY: u64 = 16;

/// What all queues of this process share. Clones share the same.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: Arc<AtomicUsize>,
}

/// The bytes of one queue.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Budget,
    bytes: AtomicUsize,
}

/// Bytes of a queue. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

// === impl Budget ===

impl Budget {
    /// The budget of a process with this memory, in bytes; `None` if it is not known.
    pub(crate) fn of_memory(memory: Option<u64>) -> Self {
        let part = memory.and_then(|memory| usize::try_from(memory / PART_OF_MEMORY).ok());
        Self::new(part.map_or(MAX_SHARED, |part| part.min(MAX_SHARED)))
    }

    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: Arc::default() }
    }

    /// The account of a queue.
    pub(crate) fn account(&self) -> Arc<Account> {
        Arc::new(Account { budget: self.clone(), bytes: AtomicUsize::new(0) })
    }
}

// === impl Account ===

impl Account {
    /// Reserves bytes; `None` if there is no room. As with other budgets, no queue takes more than it leaves free.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let shared = shared(before + bytes) - shared(before);
        let all = self.budget.used.fetch_add(shared, Ordering::Relaxed) + shared;
        // Releases the bytes if they do not fit.
        let charge = Charge { account: Arc::clone(self), bytes };
        let is_fair = shared == 0 || self::shared(before + bytes) <= self.budget.limit.saturating_sub(all - shared);
        (before + bytes <= MAX_OF_QUEUE && is_fair).then_some(charge)
    }
}

/// The bytes of a queue that count for all.
fn shared(bytes: usize) -> usize {
    bytes.saturating_sub(OWN)
}

// === impl Charge ===

impl Drop for Charge {
    fn drop(&mut self) {
        let before = self.account.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        // All changes of an account are in one order, so the differences add up to zero.
        let shared = shared(before) - shared(before - self.bytes);
        self.account.budget.used.fetch_sub(shared, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_queue_has_its_own_bytes_and_a_fair_part_of_the_rest() {
        let budget = Budget::new(1_000_000);
        let (busy, other, quiet) = (budget.account(), budget.account(), budget.account());
        let mut charges = vec![busy.charge(OWN).unwrap()];
        charges.extend((0..10).map_while(|_| busy.charge(100_000)));
        assert_eq!(charges.len(), 6, "half of what is shared");
        charges.extend((0..20).map_while(|_| other.charge(100_000)));
        assert!(budget.used.load(Ordering::Relaxed) <= budget.limit);
        assert!(other.charge(100_000).is_none());
        assert!(quiet.charge(OWN).is_some(), "its own bytes are free");
        drop(charges);
        assert_eq!([&budget.used, &busy.bytes, &other.bytes].map(|it| it.load(Ordering::Relaxed)), [0, 0, 0]);
    }

    #[test]
    fn the_budget_is_a_part_of_the_memory() {
        let limit = |memory| Budget::of_memory(memory).limit;
        assert_eq!([limit(None), limit(Some(1 << 40)), limit(Some(1 << 30))], [MAX_SHARED, MAX_SHARED, 64 << 20]);
    }

    proptest! {
        #[test]
        fn what_is_charged_is_released(steps in proptest::collection::vec((0..3usize, 0..600_000usize, any::<bool>()), 0..60)) {
            let budget = Budget::new(2_000_000);
            let accounts = [budget.account(), budget.account(), budget.account()];
            let mut charges = Vec::new();
            for (index, bytes, is_release) in steps {
                if is_release && !charges.is_empty() {
                    drop(charges.swap_remove(bytes % charges.len()));
                } else {
                    charges.extend(accounts[index].charge(bytes));
                }
                prop_assert!(budget.used.load(Ordering::Relaxed) <= budget.limit);
            }
            charges.clear();
            prop_assert_eq!(budget.used.load(Ordering::Relaxed), 0);
        }
    }
}
