//! The threads that serve requests: one per core, each with a runtime of its own.
//!
//! A request passes through two connections here: that of its client, and the tunnel. If two threads poll them, every
//! request wakes the other thread twice, and these wake-ups (futex, eventfd, epoll) cost more than the work between them.
//! So a *worker* is one thread with a `current_thread` runtime, and a connection stays on one worker for its life:
//!
//! ```text
//! main     reload, Karmada, probes, admin, drain: whatever may take long, and nothing that a request waits for
//! worker 0 accepts clients (HTTP proxy)   \
//! worker 1 accepts clients (direct)        |  each: TLS, HTTP, admission, tunnels, the access log of its connections
//! worker 2 accepts agents                  |
//! ...                                     /
//! ```
//!
//! - **Tunnels.** An agent's connection moves, as soon as it is accepted, to the worker with the fewest of them
//!   ([`Workers::least`]). An agent with several tunnels has several cores. [`crate::tunnel::Tunnel`] records its worker.
//! - **Clients.** CONNECT or SNI names the cluster before the first request. The bytes up to there are read on the worker
//!   that accepted the connection. Then the socket moves to a worker that has a tunnel of the cluster ([`Workers::of`]),
//!   unless it is there already. The socket moves once at most, before TLS begins, because a TLS session cannot move.
//! - **Paths.** A connection whose requests name the cluster (`/clusters/NAME`), and one through an HTTP proxy with TLS,
//!   stays where it was accepted.
//! - **The place is only a preference.** A cluster may change its agent while clients are connected, and one connection
//!   may use several clusters. All handles (`h2` streams, places, budgets) can be used from any thread; a request whose
//!   tunnel is on another worker costs what every request cost before. If a cluster has several tunnels,
//!   [`crate::registry::Registry::tunnel`] prefers one on its own worker.
//! - **Nothing on a worker blocks.** `block_in_place` would panic there. Files are read on the main runtime or in
//!   `spawn_blocking`. The longest work of a worker is a handshake or a minted certificate, below a millisecond.
//! - **Panics and drain.** Tasks of workers are spawned through [`ops::drain::Tasks`] like all others: a panic ends one
//!   task, and a drain waits for them all. A worker ends when the process does, or with its [`Threads`].

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ops::drain::Tasks;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// All workers. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Workers(Arc<[Worker]>);

/// Ends the workers when it is dropped. Tasks that are still running there are dropped.
#[derive(Debug)]
pub struct Threads {
    _end: DropGuard,
}

/// One thread that serves requests.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    handle: Handle,
    tunnels: AtomicUsize,
}

/// The number of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId(usize);

/// Counts a connection of an agent for its worker until it is dropped.
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
        let end = CancellationToken::new();
        let threads = Threads { _end: end.clone().drop_guard() };
        let workers = (0..count.get()).map(|number| Worker::start(WorkerId(number), end.clone()));
        Ok((Self(workers.collect::<io::Result<_>>()?), threads))
    }

    /// The worker for a part that needs one: the same number is the same worker.
    pub fn at(&self, number: usize) -> &Worker {
        &self.0[number % self.0.len()]
    }

    /// The worker with this number, if a connection for it has to move there from this thread.
    pub fn elsewhere(&self, id: Option<WorkerId>) -> Option<&Worker> {
        let WorkerId(number) = id.filter(|id| Some(*id) != here())?;
        self.0.get(number)
    }

    /// Whether connections can move at all.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Assigns a connection of an agent to the worker that has fewest of them.
    pub fn least(&self) -> (&Worker, Assignment) {
        // Two agents that connect at the same time may get the same worker. Both counts are right afterwards.
        let least = self.0.iter().min_by_key(|worker| worker.tunnels.load(Ordering::Relaxed));
        let worker = least.expect("there is at least one worker");
        worker.tunnels.fetch_add(1, Ordering::Relaxed);
        (worker, Assignment { workers: self.clone(), id: worker.id })
    }
}

/// The worker whose thread this is.
pub fn here() -> Option<WorkerId> {
    HERE.get()
}

// === impl Worker ===

impl Worker {
    fn start(id: WorkerId, end: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name(format!("worker-{}", id.0)).spawn(move || {
            HERE.set(Some(id));
            runtime.block_on(end.cancelled());
            // Returns although a blocking task may still run, which is never one of a request.
            runtime.shutdown_background();
        })?;
        Ok(Self { id, handle, tunnels: AtomicUsize::new(0) })
    }

    /// Runs a future as a task of this worker, and of `tasks`.
    pub fn spawn<F>(&self, tasks: &Tasks, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tasks.spawn_on(&self.handle, name, future);
    }

    /// Lets this worker wait for a socket that `adopt` registers (see [`ops::listen::Listener::adopt`]).
    pub fn adopt<T>(&self, adopt: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _entered = self.handle.enter();
        adopt()
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.workers.at(self.id.0).tunnels.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
