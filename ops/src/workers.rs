//! The threads that serve requests: one per core, each with a runtime of its own.
//!
//! A request passes through two connections of a proxy. If two threads poll them, every request wakes the other thread
//! twice, and these wake-ups (futex, eventfd, epoll) cost more than the work between them. So a *worker* is one thread with a
//! `current_thread` runtime, and a connection stays on one worker for its life. Long work for which no request waits
//! stays on the main runtime.
//!
//! - **The worker is only a preference.** Handles of connections can be used from any thread. A request whose
//!   connections are on two workers costs as much as with a multi-threaded runtime.
//! - **Nothing on a worker blocks.** `block_in_place` would panic there. If a worker still hangs, `/livez` fails
//!   ([`crate::heartbeat`]).
//! - **Panics and drain.** Tasks of workers are spawned through [`Tasks`] like all others. So a panic ends one task,
//!   and a drain waits for all of them. A worker ends with the process, or with its [`Threads`].

mod busy;
mod delay;

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::drain::Tasks;
pub use busy::BusyTime;
use delay::Delay;
pub use delay::{QueuedAt, is_late};

/// How long the threads may take to drop their tasks.
const ENDING: Duration = Duration::from_secs(1);

/// All workers. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Workers {
    all: Arc<[Worker]>,
    turn: Arc<AtomicUsize>,
}

/// Ends the workers when it is dropped. Tasks that are still running there are dropped.
#[derive(Debug)]
pub struct Threads {
    end: DropGuard,
    /// Closed when the last thread has ended.
    ended: mpsc::Receiver<Infallible>,
}

/// One thread that serves requests.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    handle: Handle,
    assigned: AtomicUsize,
    delay: Arc<Delay>,
}

/// The number of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId(usize);

/// One value for each worker, and one for all other threads.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[T]>);

/// Counts a connection for its worker until it is dropped.
#[derive(Debug)]
pub struct Assignment {
    workers: Workers,
    id: WorkerId,
}

thread_local! {
    static HERE: Cell<Option<WorkerId>> = const { Cell::new(None) };
}

// === impl Workers ===

impl Workers {
    /// Starts `count` threads.
    pub fn start(count: NonZeroUsize) -> io::Result<(Self, Threads)> {
        let (end, (running, ended)) = (CancellationToken::new(), mpsc::channel(1));
        let threads = Threads { end: end.clone().drop_guard(), ended };
        let workers = (0..count.get()).map(|number| Worker::start(WorkerId(number), end.clone(), running.clone()));
        Ok((Self { all: workers.collect::<io::Result<_>>()?, turn: Arc::default() }, threads))
    }

    /// The worker for this number. The same number always means the same worker.
    pub fn at(&self, number: usize) -> &Worker {
        &self.all[number % self.all.len()]
    }

    /// The worker to which a connection must move from this thread. It is the `preferred` one, or this thread's own,
    /// unless that one is [late](is_late). Then it is the worker whose tasks wait for the shortest time.
    pub fn elsewhere(&self, preferred: Option<WorkerId>) -> Option<&Worker> {
        let here = here();
        let mut chosen = self.all.get(preferred.or(here)?.0)?;
        if chosen.delay.is_late() {
            chosen = self.all.iter().min_by_key(|worker| worker.delay.average())?;
        }
        Some(chosen).filter(|worker| Some(worker.id) != here)
    }

    /// Whether connections can move at all.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Assigns a long-lived connection to the worker with the fewest of them, if possible to one that is not late.
    pub fn least(&self) -> (&Worker, Assignment) {
        self.least_of(|_| true).expect("there is at least one worker")
    }

    /// As [`least`](Self::least), but only workers that `may` have the connection are considered. `None` if there is none.
    pub fn least_of(&self, may: impl Fn(WorkerId) -> bool) -> Option<(&Worker, Assignment)> {
        // Two that are assigned at the same time may get the same worker. Both counts are right afterwards.
        let worker = self.all.iter().filter(|worker| may(worker.id)).min_by_key(|worker| worker.load())?;
        Some((worker, self.assigned_to(worker)))
    }

    /// The worker for a connection that may become a long-lived one: as [`least`](Self::least), but the connection does not
    /// count until [`assign`](Self::assign). Equal workers take turns. So short connections of strangers cannot direct
    /// all others to one worker.
    pub fn likely(&self) -> &Worker {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..self.all.len()).map(|number| self.at(first.wrapping_add(number)));
        in_turn.min_by_key(|worker| worker.load()).expect("there is at least one worker")
    }

    /// Counts a long-lived connection of this thread, if it is a worker.
    pub fn assign(&self) -> Option<Assignment> {
        let WorkerId(number) = here()?;
        Some(self.assigned_to(self.all.get(number)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.all.iter()
    }

    fn assigned_to(&self, worker: &Worker) -> Assignment {
        worker.assigned.fetch_add(1, Ordering::Relaxed);
        Assignment { workers: self.clone(), id: worker.id }
    }
}

/// The default number of threads that serve requests: one per core.
pub fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The worker whose thread this is.
pub fn here() -> Option<WorkerId> {
    HERE.get()
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}

// === impl Threads ===

impl Threads {
    /// Ends the workers and waits until their tasks are dropped. Requests that were cut off write their log lines then.
    /// Does not wait for a thread that does not return from a task.
    pub async fn end(self) {
        let Self { end, mut ended } = self;
        drop(end);
        let _ = timeout(ENDING, ended.recv()).await;
    }
}

// === impl PerWorker ===

impl<T> PerWorker<T> {
    /// Values for as many workers as the process has cores.
    pub fn new(mut value: impl FnMut() -> T) -> Self {
        Self((0..=cores().get()).map(|_| value()).collect())
    }

    /// The value for this thread.
    pub fn here(&self) -> &T {
        // If there are more workers than cores, some share a value.
        &self.0[here().map_or(0, |WorkerId(number)| 1 + number % (self.0.len() - 1))]
    }

    /// The value for the threads that are no workers.
    pub fn elsewhere(&self) -> &T {
        &self.0[0]
    }

    /// All values.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a PerWorker<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

// === impl Worker ===

impl Worker {
    fn start(id: WorkerId, end: CancellationToken, running: mpsc::Sender<Infallible>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let delay = Arc::new(Delay::default());
        let own = Arc::clone(&delay);
        thread::Builder::new().name(format!("worker-{}", id.0)).spawn(move || {
            HERE.set(Some(id));
            own.enter();
            runtime.block_on(end.cancelled());
            // Returns even if a blocking task is still running. The requests that wait for it are dropped.
            runtime.shutdown_background();
            drop(running);
        })?;
        Ok(Self { id, handle, assigned: AtomicUsize::new(0), delay })
    }

    /// Its number.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    pub(crate) fn delay(&self) -> &Arc<Delay> {
        &self.delay
    }

    fn load(&self) -> (bool, usize) {
        (self.delay.is_late(), self.assigned.load(Ordering::Relaxed))
    }

    /// Runs a future as a task of this worker, and of `tasks`. For connections: the future is boxed.
    pub fn spawn<F>(&self, tasks: &Tasks, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (given, future) = (QueuedAt::now(), Box::pin(future));
        let measured = async move {
            given.begun();
            future.await;
        };
        tasks.spawn_on(&self.handle, name, measured);
    }

    /// Lets this worker wait for a socket that `adopt` registers (see [`crate::listen::Listener::adopt`]).
    pub fn adopt<T>(&self, adopt: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _entered = self.handle.enter();
        adopt()
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.workers.at(self.id.0).assigned.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
