//! Large bodies, one after the other.
//!
//! Mapping a body of megabytes takes tens of milliseconds, and what is made of it meanwhile has many times its length. The
//! host spends as much on it again. So the large bodies of a virtual cluster are mapped one at a time, by a thread of low
//! priority that is none of those that serve everybody, and one of them is at the host at a time. So are large objects in
//! lists.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::block_in_place;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tracing::Span;

use crate::host::QUEUE_WAIT;

/// Bodies of this size take less than a turn would.
pub(crate) const SMALL: usize = 256 * 1024;

/// How many large bodies of a virtual cluster are at the host at once.
const AT_HOST: usize = 1;

/// The niceness of the thread that works on a large body: a tenth of the processor where others want it too (sched(7)).
const NICE: i32 = 10;

/// The turns of one virtual cluster.
#[derive(Debug)]
pub(crate) struct Turns {
    work: Mutex<()>,
    host: Semaphore,
}

/// Works on a body only in its turn, and waits for the host without one.
pub(crate) struct InTurn<'a, F> {
    turn: Option<&'a Mutex<()>>,
    work: F,
}

/// Lets a thread of low priority do the work.
fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let (runtime, span) = (Handle::current(), Span::current());
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _entered = runtime.enter();
            // Where this is not allowed, the work has the priority of all other work.
            let _ = setpriority_process(Some(gettid()), NICE);
            span.in_scope(work)
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Does the work when no other work has the turn.
fn in_turn<T: Send>(turn: &Mutex<()>, work: impl FnOnce() -> T + Send) -> T {
    let work = || {
        // Nothing is kept behind it that a panic could leave half-done.
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    };
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(|| in_background(work)),
        // There is no other thread that could serve anybody meanwhile.
        _ => work(),
    }
}

// === impl Turns ===

impl Default for Turns {
    fn default() -> Self {
        Self { work: Mutex::default(), host: Semaphore::new(AT_HOST) }
    }
}

impl Turns {
    /// A place at the host for a large body, for as long as it is held. A small one needs none. A request waits no longer
    /// than in the host's own queues.
    pub(crate) async fn at_host(&self, body: &[u8]) -> Result<Option<SemaphorePermit<'_>>, Elapsed> {
        if body.len() <= SMALL {
            return Ok(None);
        }
        // An error inside would mean that it is closed, which nobody does.
        timeout(QUEUE_WAIT, self.host.acquire()).await.map(Result::ok)
    }

    /// Does the work in its turn, before this returns.
    pub(crate) fn now<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_turn(&self.work, work)
    }

    /// The work on this body, in its turn.
    pub(crate) fn work<F>(&self, body: &[u8], work: F) -> InTurn<'_, F> {
        InTurn { turn: (body.len() > SMALL).then_some(&self.work), work }
    }
}

// === impl InTurn ===

impl<F> Future for InTurn<'_, F>
where
    F: Future<Output: Send> + Send + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(turn) = self.turn else { return Pin::new(&mut self.work).poll(cx) };
        let waker = cx.waker();
        in_turn(turn, || Pin::new(&mut self.work).poll(&mut Context::from_waker(waker)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    static LARGE: [u8; SMALL + 1] = [0; SMALL + 1];

    /// The only thread of the runtime serves others while a large body is worked on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_are_served_meanwhile() {
        let (sender, receiver) = mpsc::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let turns = Turns::default();
            let work = Box::pin(async move { receiver.recv_timeout(Duration::from_secs(60)).is_ok() });
            turns.work(&LARGE, work).await
        });
        tasks.spawn(async move { sender.send(()).is_ok() });
        assert_eq!(tasks.join_all().await, [true, true]);
    }

    /// Of one cluster, not more large bodies than that are at the host; small ones do not wait for them.
    #[tokio::test(start_paused = true)]
    async fn few_are_at_the_host() {
        let turns = Turns::default();
        let mut places = Vec::new();
        for _ in 0..AT_HOST {
            places.push(turns.at_host(&LARGE).await.unwrap());
        }
        let at_once = |body| timeout(Duration::ZERO, turns.at_host(body));
        assert!(at_once(&LARGE).await.is_err());
        assert!(at_once(&LARGE[..SMALL]).await.is_ok());
        assert!(turns.at_host(&LARGE).await.is_err(), "none waits for ever");
        places.pop();
        assert!(at_once(&LARGE).await.is_ok());
    }

    /// The timers of the runtime are there, and a panic is the task's.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_work_is_the_task_s() {
        let turns: &'static Turns = Box::leak(Box::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(turns.work(&LARGE, Box::pin(async { panic!("in its turn") })));
        assert!(
            tasks.join_next().await.is_some_and(|result: Result<(), _>| result.is_err_and(|error| error.is_panic()))
        );
        tasks.spawn(turns.work(&LARGE, Box::pin(async { drop(timeout(Duration::ZERO, pending::<()>()).await) })));
        assert!(tasks.join_next().await.is_some_and(|result| result.is_ok()), "the next one has its turn");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn each_has_its_turn() {
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let turns: &'static Turns = Box::leak(Box::default());
        let work = || async {
            for _ in 0..100 {
                assert_eq!(AT_ONCE.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                AT_ONCE.fetch_sub(1, Ordering::SeqCst);
                // Who waits has no turn.
                tokio::task::yield_now().await;
            }
        };
        let tasks: JoinSet<()> = (0..4).map(|_| turns.work(&LARGE, Box::pin(work()))).collect();
        tasks.join_all().await;
    }
}
