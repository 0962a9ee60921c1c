//! A cache of answers. Equal questions at the same time are sent once.
//!
//! An answer is valid for its lifetime, and after that while an optional condition is true ([`Memo::extend`]).
//!
//! The number of entries is limited, and roughly the least recently used entries go first ([`Recent`]).
//!
//! Equal questions at the same time share one answer, including errors, so that a burst does not multiply the load on a
//! slow host. If the task that sends the question is dropped, the next waiting task sends it. What is *not* here: time
//! limits.

mod recent;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use recent::Recent;

/// Answers of type `V` to questions of type `K`.
pub(crate) struct Memo<K, V, E>
where
    K: Copy + Eq + Hash,
{
    state: Mutex<State<K, V, E>>,
}

struct State<K, V, E> {
    cached: Recent<K, Cached<V>>,
    in_flight: HashMap<K, InFlight<V, E>>,
    /// How often the cache was cleared or has expired. An answer to a question from before the last time is not cached.
    epoch: u64,
    /// When answers were last removed because they are not valid.
    swept: Instant,
}

struct Cached<V> {
    answer: V,
    until: Instant,
    /// The lifetime also ends with this epoch.
    epoch: u64,
    /// After its lifetime, the answer is valid while this is true. `None` if it was not extended.
    extended_while: Option<Condition>,
}

/// The cached answers that suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// Those in their lifetime.
    Recent,
    /// Also extended ones.
    All,
}

/// The minimum time between two sweeps for answers that are not valid.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The condition under which an extended answer is valid. It must not use the cache, which is locked while it runs.
pub type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

/// A question in flight, and how many tasks wait for the answer.
struct InFlight<V, E> {
    question: Arc<Question<V, E>>,
    waiting: usize,
}

struct Question<V, E> {
    /// The task that holds it sends the question.
    turn: tokio::sync::Mutex<()>,
    answer: OnceLock<Result<V, E>>,
    epoch: u64,
}

/// A task that waits. When it is dropped, it is no longer counted.
struct Waiting<'a, K, V, E>
where
    K: Copy + Eq + Hash,
{
    memo: &'a Memo<K, V, E>,
    key: K,
    question: Arc<Question<V, E>>,
}

// === impl Memo ===

impl<K: Copy + Eq + Hash, V: Clone, E: Clone> Memo<K, V, E> {
    /// Caches at most `capacity` answers.
    pub(crate) fn new(capacity: usize) -> Self {
        let (cached, in_flight) = (Recent::new(capacity), HashMap::new());
        let state = State { cached, in_flight, epoch: 0, swept: Instant::now() };
        Self { state: Mutex::new(state) }
    }

    /// The cached answer.
    pub(crate) fn cached(&self, key: K) -> Option<V> {
        self.lock().recall(key, Accepted::All)
    }

    /// The cached answer, or the result of `ask`. `keep` returns how long to cache it, counted from the time of the
    /// question. Errors are never cached.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
        keep: impl FnOnce(&V) -> Option<Duration>,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        self.get_accepted(key, Accepted::All, ask, keep).await
    }

    /// The same, if the cached answer is one of those `accepted`.
    pub(crate) async fn get_accepted<F>(
        &self,
        key: K,
        accepted: Accepted,
        ask: impl FnOnce() -> F,
        keep: impl FnOnce(&V) -> Option<Duration>,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let waiting = match self.cached_or_in_flight(key, accepted) {
            Ok(answer) => return Ok(answer),
            Err(waiting) => waiting,
        };
        let question = &*waiting.question;
        let _turn = question.turn.lock().await;
        if let Some(answer) = question.answer.get() {
            return answer.clone();
        }
        let sent_at = Instant::now();
        // Boxed, because the state of a request to the host is large, and most answers are cached.
        let answer = Box::pin(ask()).await;
        let lifetime = answer.as_ref().ok().and_then(keep);
        // Only the holder of the turn gets here, and only once for each question.
        let _ = question.answer.set(answer.clone());

        let mut state = self.lock();
        if state.is_in_flight(&key, &waiting.question) {
            state.in_flight.remove(&key);
        }
        if let (Ok(answer), Some(lifetime)) = (&answer, lifetime)
            && question.epoch == state.epoch
        {
            let (answer, epoch) = (answer.clone(), state.epoch);
            let cached = Cached { answer, until: sent_at + lifetime, epoch, extended_while: None };
            state.cached.insert(key, cached);
        }
        answer
    }

    /// Extends the cached answer if it is `eligible`: after its lifetime, it is valid while `condition` returns true. Does nothing
    /// if the answer is not cached, or if an earlier condition is still true.
    pub(crate) fn extend(&self, key: K, eligible: impl FnOnce(&V) -> bool, condition: Condition) {
        if let Some(cached) = self.lock().cached.get_mut(&key)
            && eligible(&cached.answer)
            && !cached.is_extended()
        {
            cached.extended_while = Some(condition);
        }
    }

    /// Ends the lifetimes of all answers, and forgets those to questions in flight. Answers that are extended stay valid while
    /// their conditions are true.
    pub(crate) fn expire(&self) {
        let mut state = self.lock();
        state.begin_epoch();
        // An answer that is not valid keeps what its condition needs.
        if state.swept.elapsed() >= SWEEP_INTERVAL {
            state.swept = Instant::now();
            state.cached.retain(Cached::is_extended);
        }
    }

    /// Forgets everything, including the answers to questions in flight.
    pub(crate) fn flush(&self) {
        let mut state = self.lock();
        state.cached.clear();
        state.begin_epoch();
    }

    fn cached_or_in_flight(&self, key: K, accepted: Accepted) -> Result<V, Waiting<'_, K, V, E>> {
        let mut state = self.lock();
        if let Some(answer) = state.recall(key, accepted) {
            return Ok(answer);
        }
        let epoch = state.epoch;
        let in_flight =
            state.in_flight.entry(key).or_insert_with(|| InFlight { question: Question::new(epoch), waiting: 0 });
        in_flight.waiting += 1;
        Err(Waiting { memo: self, key, question: Arc::clone(&in_flight.question) })
    }
}

impl<K: Copy + Eq + Hash, V, E> Memo<K, V, E> {
    /// How many answers are cached, and how many questions are in flight.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        let state = self.lock();
        (state.cached.len(), state.in_flight.len())
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V, E>> {
        // Every change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Neither questions nor answers belong in logs.
impl<K: Copy + Eq + Hash, V, E> fmt::Debug for Memo<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

// === impl State ===

impl<K: Copy + Eq + Hash, V: Clone, E> State<K, V, E> {
    fn recall(&mut self, key: K, accepted: Accepted) -> Option<V> {
        let epoch = self.epoch;
        let cached = self.cached.get(&key)?;
        if cached.is_recent(epoch) || (accepted == Accepted::All && cached.is_extended()) {
            return Some(cached.answer.clone());
        }
        if !cached.is_extended() {
            self.cached.remove(&key);
        }
        None
    }
}

impl<K: Copy + Eq + Hash, V, E> State<K, V, E> {
    /// The answers to questions in flight are not cached.
    fn begin_epoch(&mut self) {
        self.in_flight.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Whether later callers would wait for this question. After a flush, they do not.
    fn is_in_flight(&self, key: &K, question: &Arc<Question<V, E>>) -> bool {
        self.in_flight.get(key).is_some_and(|in_flight| Arc::ptr_eq(&in_flight.question, question))
    }
}

// === impl Cached ===

impl<V> Cached<V> {
    /// Whether the lifetime has not ended.
    fn is_recent(&self, epoch: u64) -> bool {
        self.epoch == epoch && Instant::now() < self.until
    }

    fn is_extended(&self) -> bool {
        self.extended_while.as_ref().is_some_and(|condition| condition())
    }
}

// === impl Question ===

impl<V, E> Question<V, E> {
    fn new(epoch: u64) -> Arc<Self> {
        Arc::new(Self { turn: tokio::sync::Mutex::new(()), answer: OnceLock::new(), epoch })
    }
}

// === impl Waiting ===

impl<K: Copy + Eq + Hash, V, E> Drop for Waiting<'_, K, V, E> {
    fn drop(&mut self) {
        let mut state = self.memo.lock();
        if !state.is_in_flight(&self.key, &self.question) {
            return;
        }
        if let Some(in_flight) = state.in_flight.get_mut(&self.key) {
            in_flight.waiting -= 1;
            if in_flight.waiting == 0 {
                state.in_flight.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
