//! Limits how many large bodies are processed at a time.
//!
//! Mapping a body of megabytes takes tens of milliseconds and many times its length in memory. The host needs as much
//! again. So each virtual cluster processes its large bodies one after the other. A *turn* is the time in which one of them
//! is processed:
//!
//! - The agent maps one large body of a cluster at a time, in a thread of low priority
//!   ([`LargeObjectLimits::in_turn`], [`LargeObjectLimits::run`]). The same applies to large objects in responses. A worker
//!   maps those of up to [`WORKER_LENGTH`] bytes itself, and must leave longer ones to another thread
//!   ([`LargeObjectLimits::apart`]).
//! - The host gets one large body and a few bodies of medium size of a cluster at a time
//!   ([`LargeObjectLimits::at_host`]).
//! - Two clusters may have a large object in parsed form at a time ([`LargeObjectLimits::parsed`]).
//! - Watches process one long event of a cluster at a time, up to a rate ([`LargeObjectLimits::frames`],
//!   [`LargeObjectLimits::slot`]).

use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, block_in_place, spawn_blocking};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};
use tracing::Span;

use host_client::QUEUE_WAIT;

/// The size class of a body, which decides whether it waits for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// It waits for nothing.
    Small,
    /// It is mapped at once, but the host gets only a few such bodies at a time.
    Medium,
    /// It is mapped in its turn, and the host gets one such body at a time.
    Large,
}

/// A body that weighs more than this, in bytes, is of medium size. An object with about 170 small values weighs this
/// much. If all values are invalid, the host needs about 20 ms to report it, and 80 ms for twice as many values.
pub const MEDIUM_WEIGHT: usize = 128 * 1024;

/// A body that is longer than this, in bytes, is large. Processing a shorter one takes less time than switching to another
/// thread, unless it has many small values.
pub const LARGE_LENGTH: usize = 256 * 1024;

/// A worker does not work on an object that is longer than this, in bytes: it would delay the other virtual clusters by
/// milliseconds. It maps a shorter one faster than it encrypts it.
pub const WORKER_LENGTH: usize = 1024 * 1024;

/// A body that weighs more than this, in bytes, is large.
const LARGE_WEIGHT: usize = 512 * 1024;

/// The number of bodies of medium size of a virtual cluster that the host gets at a time.
const MEDIUM_AT_HOST: usize = 8;

/// The number of large bodies of a virtual cluster that the host gets at a time.
const LARGE_AT_HOST: usize = 1;

/// The number of virtual clusters that may have a large object in parsed form at a time. Each of these may take 64 MiB
/// of memory.
pub const PARSED: usize = 2;

/// The time for each byte of long events. It limits the watches of a virtual cluster to 64 MiB per second. Without this
/// limit, a change of an object of 1 MB that a thousand watches show would occupy the host and the agent for seconds.
const NANOS_PER_BYTE: u64 = 15;

/// The niceness of the thread that works on a large body. The thread gets about a tenth of the time of a processor that
/// other threads use, too (sched(7)).
const NICE: i32 = 10;

/// The turns of one virtual cluster.
#[derive(Debug)]
pub struct LargeObjectLimits {
    work: Arc<Mutex<()>>,
    /// For objects that wait for `work` in other threads, so that one thread waits at a time.
    apart: Arc<Semaphore>,
    medium: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// Shared by all clusters.
    parsed: Arc<Semaphore>,
    /// The turn of watches. They do not block threads while they wait, because there are too many of them.
    frames: Arc<Semaphore>,
    /// The time from which a watch may process the next long event.
    next_slot: Mutex<Instant>,
}

/// A future that is polled in its turn if the flag is set when the poll begins.
pub struct InTurn<'a, F> {
    turn: &'a Mutex<()>,
    is_working: &'a AtomicBool,
    work: F,
}

/// Does the work in a thread of low priority.
fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let (runtime, span) = (Handle::current(), Span::current());
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _entered = runtime.enter();
            // On Linux, the call changes only the thread that has this id (setpriority(2)). If it is not allowed, the thread
            // keeps the normal priority.
            let _ = setpriority_process(Some(gettid()), NICE);
            span.in_scope(work)
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Waits for the turn.
fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    // The lock protects no data, so a panic cannot leave inconsistent data behind.
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the turn, and does the work.
fn in_turn<T: Send>(turn: &Mutex<()>, work: impl FnOnce() -> T + Send) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        return block_in_place(|| {
            let _turn = lock(turn);
            in_background(work)
        });
    }
    if ops::workers::here().is_some() {
        // A worker works on one thing at a time, and serves requests of other virtual clusters: it must not wait for the turn
        // of this one. Only responses of the host come here, and those of more than `WORKER_LENGTH` do not.
        return work();
    }
    // The runtime has no other thread that could serve other requests in the meantime.
    let _turn = lock(turn);
    work()
}

// === impl LargeObjectLimits ===

impl Default for LargeObjectLimits {
    fn default() -> Self {
        Self::new(Arc::new(Semaphore::new(PARSED)))
    }
}

impl LargeObjectLimits {
    /// The turns of a new virtual cluster. All clusters share `parsed`, of [`PARSED`] permits.
    pub fn new(parsed: Arc<Semaphore>) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self {
            work: Arc::default(),
            apart: semaphore(1),
            medium: semaphore(MEDIUM_AT_HOST),
            large: semaphore(LARGE_AT_HOST),
            parsed,
            frames: semaphore(1),
            next_slot: Mutex::new(Instant::now()),
        }
    }

    /// Waits until a large object of this cluster may be parsed. At most one object of each cluster waits, because it already
    /// has its turn at the host. The semaphore is fair, so the clusters take turns.
    pub async fn parsed(&self, size: Size) -> Result<Option<OwnedSemaphorePermit>, Elapsed> {
        if size < Size::Large {
            return Ok(None);
        }
        timeout(QUEUE_WAIT, Arc::clone(&self.parsed).acquire_owned()).await.map(Result::ok)
    }

    /// Waits until a large object of this cluster may be parsed after a request to the host, which may have had an effect. So this
    /// has no time limit. A permit is not held while the host prepares a response.
    pub async fn parsed_again(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.parsed).acquire_owned().await.ok()
    }

    /// Waits for the turn of a body at the host, which lasts until the permit is dropped. A small body needs no permit. The wait
    /// is at most as long as in the host's own queues.
    pub async fn at_host(&self, size: Size) -> Result<Option<OwnedSemaphorePermit>, Elapsed> {
        let semaphore = match size {
            Size::Small => return Ok(None),
            Size::Medium => &self.medium,
            Size::Large => &self.large,
        };
        // The inner error means that the semaphore is closed, but these never are.
        timeout(QUEUE_WAIT, Arc::clone(semaphore).acquire_owned()).await.map(Result::ok)
    }

    /// Waits for the turn of this cluster, and then does the work on a large object. Blocks the thread until it is done.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_turn(&self.work, work)
    }

    /// Whether this thread must leave work on an object of this length to another one.
    pub fn is_for_another_thread(length: usize) -> bool {
        length > WORKER_LENGTH && ops::workers::here().is_some()
    }

    /// Does the work on a large object in another thread, in the turn of this cluster. The work ends even if nobody waits for
    /// it.
    pub fn apart<T>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send + 'static
    where
        T: Send + 'static,
    {
        let (apart, turn) = (Arc::clone(&self.apart), Arc::clone(&self.work));
        async move {
            let permit = apart.acquire_owned().await;
            let in_turn = move || {
                let _permit = permit;
                let _turn = lock(&turn);
                in_background(work)
            };
            match spawn_blocking(in_turn).await.map_err(JoinError::try_into_panic) {
                Ok(done) => done,
                Err(Ok(panic)) => resume_unwind(panic),
                // The runtime ends, and the task that waits with it.
                Err(Err(_)) => pending().await,
            }
        }
    }

    /// Wraps a future, so that it is polled in its turn while `is_working` is set. The future must clear the flag
    /// before it waits for other tasks, because a thread of low priority may be suspended while it holds a lock that
    /// they need.
    pub fn in_turn<'a, F>(&'a self, is_working: &'a AtomicBool, work: F) -> InTurn<'a, F> {
        InTurn { turn: &self.work, is_working, work }
    }

    /// Reserves the time for a watch to process this many bytes of a long event. Returns when the watch may begin.
    pub fn slot(&self, bytes: usize) -> Instant {
        let time = Duration::from_nanos(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(NANOS_PER_BYTE));
        let mut next_slot = self.next_slot.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = (*next_slot).max(Instant::now());
        *next_slot = slot + time;
        slot
    }

    /// The semaphore that a watch acquires before it works on a long event.
    pub fn frames(&self) -> Arc<Semaphore> {
        Arc::clone(&self.frames)
    }
}

// === impl Size ===

impl Size {
    /// The size class of a body, by its length and its weight in bytes.
    pub fn of(length: usize, weight: usize) -> Self {
        if length > LARGE_LENGTH || weight > LARGE_WEIGHT {
            Self::Large
        } else if weight > MEDIUM_WEIGHT {
            Self::Medium
        } else {
            Self::Small
        }
    }
}

// === impl InTurn ===

impl<F> Future for InTurn<'_, F>
where
    F: Future<Output: Send> + Send + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !self.is_working.load(Ordering::Relaxed) {
            return Pin::new(&mut self.work).poll(cx);
        }
        let (turn, waker) = (self.turn, cx.waker());
        in_turn(turn, || Pin::new(&mut self.work).poll(&mut Context::from_waker(waker)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use ops::drain::Tasks;
    use ops::workers::Workers;
    use tokio::sync::oneshot;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    static WORKING: AtomicBool = AtomicBool::new(true);

    /// A cluster waits only if two other clusters have large objects in parsed form.
    #[tokio::test(start_paused = true)]
    async fn few_clusters_parse_large_objects() {
        let parsed = Arc::new(Semaphore::new(PARSED));
        let clusters = [(); PARSED + 1].map(|()| LargeObjectLimits::new(Arc::clone(&parsed)));
        let mut held = Vec::new();
        for turns in &clusters[..PARSED] {
            held.push(turns.parsed(Size::Large).await.unwrap());
        }
        let last = &clusters[PARSED];
        assert!(last.parsed(Size::Medium).await.is_ok());
        assert!(last.parsed(Size::Large).await.is_err(), "no request waits for ever");
        held.pop();
        assert!(last.parsed(Size::Large).await.is_ok());
    }

    /// The only thread of the runtime serves other tasks while a large body is processed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_requests_are_served_meanwhile() {
        let (sender, receiver) = mpsc::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let turns = LargeObjectLimits::default();
            let work = Box::pin(async move { receiver.recv_timeout(Duration::from_secs(60)).is_ok() });
            turns.in_turn(&WORKING, work).await
        });
        tasks.spawn(async move { sender.send(()).is_ok() });
        assert_eq!(tasks.join_all().await, [true, true]);
    }

    #[test]
    fn long_or_heavy_bodies_are_large() {
        let bodies = [
            (0, 0),
            (LARGE_LENGTH, MEDIUM_WEIGHT),
            (9, MEDIUM_WEIGHT + 1),
            (9, LARGE_WEIGHT + 1),
            (LARGE_LENGTH + 1, 0),
        ];
        let sizes = bodies.map(|(length, weight)| Size::of(length, weight));
        assert_eq!(sizes, [Size::Small, Size::Small, Size::Medium, Size::Large, Size::Large]);
    }

    /// The host gets only this many large bodies of one cluster at a time. Small ones do not wait for them.
    #[tokio::test(start_paused = true)]
    async fn few_are_at_the_host() {
        let turns = LargeObjectLimits::default();
        let mut taken = Vec::new();
        for _ in 0..LARGE_AT_HOST {
            taken.push(turns.at_host(Size::Large).await.unwrap());
        }
        let at_once = |size| timeout(Duration::ZERO, turns.at_host(size));
        assert!(at_once(Size::Large).await.is_err());
        assert!(at_once(Size::Small).await.is_ok());
        let medium: Vec<_> = (0..MEDIUM_AT_HOST).map(|_| at_once(Size::Medium)).collect();
        for taken in medium {
            drop(taken.await.unwrap());
        }
        assert!(turns.at_host(Size::Large).await.is_err(), "none waits for ever");
        taken.pop();
        assert!(at_once(Size::Large).await.is_ok());
    }

    /// The work can use the runtime's timers, and its panic is that of its task.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_uses_the_runtime_and_panics_in_its_task() {
        let turns: &'static LargeObjectLimits = Box::leak(Box::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(turns.in_turn(&WORKING, Box::pin(async { panic!("in its turn") })));
        assert!(
            tasks.join_next().await.is_some_and(|result: Result<(), _>| result.is_err_and(|error| error.is_panic()))
        );
        tasks.spawn(turns.in_turn(&WORKING, Box::pin(async { drop(timeout(Duration::ZERO, pending::<()>()).await) })));
        assert!(tasks.join_next().await.is_some_and(|result| result.is_ok()), "the next one has its turn");
    }

    /// A worker leaves longer objects to another thread, and serves others meanwhile.
    #[tokio::test]
    async fn a_worker_does_not_work_on_long_objects() {
        let (workers, _threads) = Workers::start(NonZeroUsize::MIN).unwrap();
        let is_apart = LargeObjectLimits::is_for_another_thread;
        assert!(!is_apart(WORKER_LENGTH + 1), "not a worker");
        let (turns, tasks) = (Arc::new(LargeObjectLimits::default()), Tasks::new());
        let (start, started) = mpsc::channel();
        let (sender, done) = oneshot::channel();
        let of_task = Arc::clone(&turns);
        workers.at(0).spawn(&tasks, "test", async move {
            assert!(is_apart(WORKER_LENGTH + 1) && !is_apart(WORKER_LENGTH));
            let work = move || (started.recv().is_ok(), ops::workers::here());
            sender.send(of_task.apart(work).await).unwrap();
        });
        // The worker runs this, although the other work goes on.
        workers.at(0).spawn(&tasks, "test", async move { start.send(()).unwrap() });
        assert_eq!(done.await, Ok((true, None)));
        let panicked = JoinSet::from_iter([turns.apart(|| -> () { panic!("apart") })]).join_next().await;
        assert!(panicked.unwrap().unwrap_err().is_panic());
        assert_eq!(turns.apart(|| 1).await, 1, "the next one has its turn");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn each_has_its_turn() {
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let turns: &'static LargeObjectLimits = Box::leak(Box::default());
        let work = || async {
            for _ in 0..100 {
                assert_eq!(AT_ONCE.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                AT_ONCE.fetch_sub(1, Ordering::SeqCst);
                // A task that waits does not keep the turn.
                tokio::task::yield_now().await;
            }
        };
        let tasks: JoinSet<()> = (0..4).map(|_| turns.in_turn(&WORKING, Box::pin(work()))).collect();
        tasks.join_all().await;
    }
}
