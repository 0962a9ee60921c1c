//! A work queue of keys. Each key is processed once at a time, and again after a back-off if it failed.
//!
//! ```text
//!            add                 start               done
//! (nothing) ------> Ready/Later --------> Running ----------------> (nothing)
//!                       ^                    | failed, or added meanwhile
//!                       +--------------------+
//! ```
//!
//! Every key has an owner. Owners take turns, and only a few keys of one owner are processed at once. So a thousand
//! keys of one owner delay a key of another owner by at most one key per turn.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use ops::backoff::Backoff;
use tokio::time::Instant;

/// The pauses of a key that fails.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));

/// The queue. Its size is bounded by the number of different keys.
pub(super) struct Queue<K, O> {
    owner: Box<dyn Fn(&K) -> O + Send>,
    /// The maximum number of keys of one owner that are processed at once.
    of_one: usize,
    ready: HashMap<O, VecDeque<K>>,
    /// Owners with ready keys, in the order of their turns.
    turns: VecDeque<O>,
    running: HashMap<K, O>,
    later: BTreeSet<(Instant, K)>,
    states: HashMap<K, State>,
    /// The consecutive failures of each key that failed last time.
    failures: HashMap<K, Backoff>,
    again: HashSet<K>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Later(Instant),
    Running,
}

// === impl Queue ===

impl<K: Clone + Eq + Hash + Ord, O: Clone + Eq + Hash> Queue<K, O> {
    /// At most `of_one` keys of an owner are processed at once. `owner` is called when a key becomes ready.
    pub(super) fn new(of_one: usize, owner: impl Fn(&K) -> O + Send + 'static) -> Self {
        Self {
            owner: Box::new(owner),
            of_one,
            running: HashMap::new(),
            ready: HashMap::new(),
            turns: VecDeque::new(),
            later: BTreeSet::new(),
            states: HashMap::new(),
            failures: HashMap::new(),
            again: HashSet::new(),
        }
    }

    /// Adds a key. A key that is being processed is processed once more afterwards.
    pub(super) fn add(&mut self, key: K) {
        match self.states.get(&key) {
            // A key that failed keeps its back-off, regardless of further events.
            Some(State::Ready | State::Later(_)) => return,
            Some(State::Running) => {
                self.again.insert(key);
                return;
            }
            None => {}
        }
        self.make_ready(key);
    }

    /// Like [`add`](Self::add), but ends the back-off of a key that failed: the event may be what it waits for.
    pub(super) fn hurry(&mut self, key: K) {
        if let Some(State::Later(due)) = self.states.get(&key).copied() {
            self.later.remove(&(due, key.clone()));
            self.states.remove(&key);
        }
        self.add(key);
    }

    /// Takes the next key to process.
    pub(super) fn start(&mut self, now: Instant) -> Option<K> {
        while let Some((due, _)) = self.later.first()
            && *due <= now
        {
            let (_, key) = self.later.pop_first().expect("there is a first one");
            self.make_ready(key);
        }
        let may_start = |owner: &O| self.running.values().filter(|of| *of == owner).count() < self.of_one;
        let owner = self.turns.remove(self.turns.iter().position(may_start)?)?;
        let line = self.ready.get_mut(&owner)?;
        let key = line.pop_front()?;
        if line.is_empty() {
            self.ready.remove(&owner);
        } else {
            self.turns.push_back(owner.clone());
        }
        self.states.insert(key.clone(), State::Running);
        self.running.insert(key.clone(), owner);
        Some(key)
    }

    fn make_ready(&mut self, key: K) {
        self.states.insert(key.clone(), State::Ready);
        let owner = (self.owner)(&key);
        let line = self.ready.entry(owner.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(owner);
        }
        line.push_back(key);
    }

    /// The end of the earliest back-off, when [`start`](Self::start) may return another key.
    pub(super) fn due(&self) -> Option<Instant> {
        self.later.first().map(|(due, _)| *due)
    }

    /// Processing succeeded.
    pub(super) fn done(&mut self, key: K) {
        self.failures.remove(&key);
        self.states.remove(&key);
        self.running.remove(&key);
        if self.again.remove(&key) {
            self.add(key);
        }
    }

    /// Processing cannot succeed yet. The key becomes ready again when it is due, whatever happens until then.
    pub(super) fn later(&mut self, key: K, due: Instant) {
        self.failures.remove(&key);
        self.again.remove(&key);
        self.running.remove(&key);
        self.states.insert(key.clone(), State::Later(due));
        self.later.insert((due, key));
    }

    /// Processing failed. The key becomes ready again after a back-off.
    pub(super) fn failed(&mut self, key: K, now: Instant) {
        // Half of it is random, because several agents process the same objects.
        let mut backoff = self.failures.remove(&key).unwrap_or(RETRY_BACKOFF);
        self.later(key.clone(), now + backoff.fail_with_half_jitter());
        self.failures.insert(key, backoff);
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_key_is_processed_once_at_a_time() {
        let now = Instant::now();
        let mut queue = Queue::new(9, |_| ());
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!((queue.start(now), queue.start(now), queue.start(now)), (Some("a"), Some("b"), None));
        queue.add("a");
        assert_eq!(queue.start(now), None);
        queue.done("a");
        assert_eq!(queue.start(now), Some("a"));
        queue.done("a");
        queue.done("b");
        assert!(queue.start(now).is_none() && queue.states.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn owners_take_turns() {
        let now = Instant::now();
        let mut queue = Queue::new(9, |key: &&str| key.chars().next());
        for key in ["a1", "a2", "a3", "b1", "b2"] {
            queue.add(key);
        }
        let first: Vec<_> = (0..3).filter_map(|_| queue.start(now)).collect();
        assert_eq!(first, ["a1", "b1", "a2"]);
        queue.add("c1");
        let others: Vec<_> = (0..9).filter_map(|_| queue.start(now)).collect();
        assert_eq!(others, ["b2", "a3", "c1"]);
        assert!(queue.ready.is_empty() && queue.turns.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn few_keys_of_an_owner_are_processed_at_once() {
        let now = Instant::now();
        let mut queue = Queue::new(2, |key: &&str| key.chars().next());
        for key in ["a1", "a2", "a3", "a4", "b1"] {
            queue.add(key);
        }
        let first: Vec<_> = iter::from_fn(|| queue.start(now)).collect();
        assert_eq!(first, ["a1", "b1", "a2"]);
        queue.done("a2");
        queue.failed("b1", now);
        assert_eq!((queue.start(now), queue.start(now)), (Some("a3"), None));
        queue.done("a1");
        assert_eq!((queue.start(now), queue.start(now)), (Some("a4"), None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_backoff_grows_and_success_resets_it() {
        let mut now = Instant::now();
        let mut queue = Queue::new(9, |_| ());
        queue.add("a");
        for failure in 0..100_u32 {
            assert_eq!(queue.start(now), Some("a"));
            queue.failed("a", now);
            queue.add("a");
            assert_eq!(queue.start(now), None);
            let due = queue.due().unwrap();
            let bound = RETRY_BACKOFF.after(failure).bound();
            assert!(due <= now + bound && due >= now + bound / 2);
            now = due;
        }
        assert_eq!(queue.start(now), Some("a"));
        queue.failed("a", now);
        queue.hurry("a");
        assert_eq!((queue.start(now), queue.start(now)), (Some("a"), None));
        queue.done("a");
        assert!(queue.failures.is_empty() && queue.later.is_empty() && queue.again.is_empty());
    }
}
