//! A cache of answers. Equal questions at the same time are sent once.
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
    /// How often the cache was cleared. An answer to a question from before the last time is not cached.
    epoch: u64,
}

struct Cached<V> {
    answer: V,
    until: Instant,
    /// Whether the answer is still valid, although its time is over.
    still_holds: Option<Holds>,
}

/// Whether a cached answer is still valid. It may not use the cache.
pub type Holds = Arc<dyn Fn() -> bool + Send + Sync>;

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
        let state = State { cached: Recent::new(capacity), in_flight: HashMap::new(), epoch: 0 };
        Self { state: Mutex::new(state) }
    }

    /// The cached answer.
    pub(crate) fn cached(&self, key: K) -> Option<V> {
        self.lock().recall(key)
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
        let waiting = match self.cached_or_in_flight(key) {
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
            let cached = Cached { answer: answer.clone(), until: sent_at + lifetime, still_holds: None };
            state.cached.insert(key, cached);
        }
        answer
    }

    /// Keeps a cached answer that is `eligible` for as long as `holds`, in addition to its time. Does nothing if the answer is no
    /// longer cached.
    pub(crate) fn extend(&self, key: K, eligible: impl FnOnce(&V) -> bool, holds: Holds) {
        if let Some(cached) = self.lock().cached.get_mut(&key)
            && eligible(&cached.answer)
        {
            cached.still_holds = Some(holds);
        }
    }

    /// Forgets everything, including the answers to questions in flight.
    pub(crate) fn flush(&self) {
        let mut state = self.lock();
        state.cached.clear();
        state.in_flight.clear();
        state.epoch = state.epoch.wrapping_add(1);
    }

    fn cached_or_in_flight(&self, key: K) -> Result<V, Waiting<'_, K, V, E>> {
        let mut state = self.lock();
        if let Some(answer) = state.recall(key) {
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
    fn recall(&mut self, key: K) -> Option<V> {
        match self.cached.get(&key) {
            Some(cached) if cached.is_valid() => return Some(cached.answer.clone()),
            Some(_) => self.cached.remove(&key),
            None => {}
        }
        None
    }
}

impl<K: Copy + Eq + Hash, V, E> State<K, V, E> {
    /// Whether later callers would wait for this question. After a flush, they do not.
    fn is_in_flight(&self, key: &K, question: &Arc<Question<V, E>>) -> bool {
        self.in_flight.get(key).is_some_and(|in_flight| Arc::ptr_eq(&in_flight.question, question))
    }
}

// === impl Cached ===

impl<V> Cached<V> {
    fn is_valid(&self) -> bool {
        Instant::now() < self.until || self.still_holds.as_ref().is_some_and(|holds| holds())
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
