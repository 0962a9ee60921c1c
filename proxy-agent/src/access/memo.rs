//! Answers that are remembered for a moment and asked for once at a time.
//!
//! Bounded by a number of entries. What is used stays longest, roughly: entries live in a young and an old half, use
//! moves an entry to the young one, and when that is full it becomes the old one, whose entries go. That is O(1) and
//! keeps no list.
//!
//! Equal questions at the same time share one answer, errors included, so that a burst does not multiply the load on a
//! host that is slow already. When whoever asks goes away, the next in line asks. What is *not* here: time limits.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Answers of type `V` to questions of type `K`.
pub(crate) struct Memo<K, V, E>
where
    K: Copy + Eq + Hash,
{
    half: usize,
    state: Mutex<State<K, V, E>>,
}

struct State<K, V, E> {
    young: HashMap<K, Known<V>>,
    old: HashMap<K, Known<V>>,
    asked: HashMap<K, Asked<V, E>>,
    /// How many times everything was forgotten. What was asked before the last time is not remembered.
    epoch: u64,
}

struct Known<V> {
    answer: V,
    until: Instant,
}

/// A question that is being asked, and how many wait for the answer.
struct Asked<V, E> {
    question: Arc<Question<V, E>>,
    waiting: usize,
}

struct Question<V, E> {
    /// Whoever holds it asks.
    turn: tokio::sync::Mutex<()>,
    answer: OnceLock<Result<V, E>>,
    epoch: u64,
}

/// One that waits; says so when it goes away.
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
    /// Remembers `capacity` answers at most.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { young: HashMap::new(), old: HashMap::new(), asked: HashMap::new(), epoch: 0 };
        Self { half: (capacity / 2).max(1), state: Mutex::new(state) }
    }

    /// The remembered answer, or what `ask` says. `keep` says how long to remember it, counted from the moment of
    /// asking; errors are never remembered.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
        keep: impl FnOnce(&V) -> Option<Duration>,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let waiting = match self.known_or_asked(key) {
            Ok(answer) => return Ok(answer),
            Err(waiting) => waiting,
        };
        let question = &*waiting.question;
        let _turn = question.turn.lock().await;
        if let Some(answer) = question.answer.get() {
            return answer.clone();
        }
        let asked_at = Instant::now();
        let answer = ask().await;
        let lifetime = answer.as_ref().ok().and_then(keep);
        // Only the holder of the turn gets here, and only once per question.
        let _ = question.answer.set(answer.clone());

        let mut state = self.lock();
        if state.is_asked(&key, &waiting.question) {
            state.asked.remove(&key);
        }
        if let (Ok(answer), Some(lifetime)) = (&answer, lifetime)
            && question.epoch == state.epoch
        {
            state.remember(key, Known { answer: answer.clone(), until: asked_at + lifetime }, self.half);
        }
        answer
    }

    /// Forgets everything, the answers to what is being asked included.
    pub(crate) fn flush(&self) {
        let mut state = self.lock();
        *state = State {
            young: HashMap::new(),
            old: HashMap::new(),
            asked: HashMap::new(),
            epoch: state.epoch.wrapping_add(1),
        };
    }

    fn known_or_asked(&self, key: K) -> Result<V, Waiting<'_, K, V, E>> {
        let mut state = self.lock();
        if let Some(answer) = state.recall(key, self.half) {
            return Ok(answer);
        }
        let epoch = state.epoch;
        let asked = state.asked.entry(key).or_insert_with(|| Asked { question: Question::new(epoch), waiting: 0 });
        asked.waiting += 1;
        Err(Waiting { memo: self, key, question: Arc::clone(&asked.question) })
    }
}

impl<K: Copy + Eq + Hash, V, E> Memo<K, V, E> {
    /// How many answers are remembered and how many questions are being asked.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        let state = self.lock();
        (state.young.len() + state.old.len(), state.asked.len())
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V, E>> {
        // Every change is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Neither questions nor answers are for logs.
impl<K: Copy + Eq + Hash, V, E> fmt::Debug for Memo<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").field("half", &self.half).finish_non_exhaustive()
    }
}

// === impl State ===

impl<K: Copy + Eq + Hash, V: Clone, E> State<K, V, E> {
    fn recall(&mut self, key: K, half: usize) -> Option<V> {
        let now = Instant::now();
        if let Some(known) = self.young.get(&key) {
            if now < known.until {
                return Some(known.answer.clone());
            }
            self.young.remove(&key);
            return None;
        }
        let known = self.old.remove(&key).filter(|known| now < known.until)?;
        let answer = known.answer.clone();
        self.remember(key, known, half);
        Some(answer)
    }

    fn remember(&mut self, key: K, known: Known<V>, half: usize) {
        if self.young.len() >= half {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, known);
    }
}

impl<K: Copy + Eq + Hash, V, E> State<K, V, E> {
    /// Whether this very question is the one that newcomers wait for; after a flush it is not.
    fn is_asked(&self, key: &K, question: &Arc<Question<V, E>>) -> bool {
        self.asked.get(key).is_some_and(|asked| Arc::ptr_eq(&asked.question, question))
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
        if !state.is_asked(&self.key, &self.question) {
            return;
        }
        if let Some(asked) = state.asked.get_mut(&self.key) {
            asked.waiting -= 1;
            if asked.waiting == 0 {
                state.asked.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
