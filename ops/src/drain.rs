//! Tasks that end. A binary spawns everything besides its main function through [`Tasks`]. So a shutdown cancels the
//! tasks, waits for them until a deadline, and never cuts a connection off by chance.
//!
//! Only this module spawns on a runtime. What is *not* here: what a task does when it is cancelled. A listener stops
//! accepting, a tunnel sends GOAWAY; each sees [`Tasks::cancelled`] and ends in its own way.

mod kept;
mod running;
mod signal;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use kept::{Dropping, Kept};
use running::Running;
pub use signal::{Signal, Signals, signal};

/// A scope of tasks, which can be cancelled and waited for. Clones are the same scope.
#[derive(Clone, Debug)]
pub struct Tasks {
    scope: Arc<Scope>,
}

#[derive(Debug)]
struct Scope {
    parent: Option<Arc<Self>>,
    tracker: TaskTracker,
    /// Cancelled when a drain begins.
    ending: CancellationToken,
    /// Begins when the drain is given up. Tasks are then dropped at their next await.
    dropping: Arc<Dropping>,
    running: Running,
}

/// The time for tasks to be dropped after a drain is given up.
const DROP_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay after which a long response ends, if its client can continue it elsewhere: a random time within three
/// quarters of the drain. If all such responses ended at the same time, all clients would reconnect at the same time.
pub fn spread_end(drain: Duration) -> Duration {
    drain.mul_f64(0.75 * fastrand::f64())
}

/// How a drain ended. In any case, no task of the scope is left, except one that never reaches an await.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every task ended by itself.
    Clean,
    /// The deadline passed, and the remaining tasks were dropped: their names, and the number of each.
    Deadline(Vec<(&'static str, usize)>),
    /// A second signal arrived, and the remaining tasks were dropped.
    Hurried(Vec<(&'static str, usize)>),
}

// === impl Tasks ===

impl Tasks {
    /// A scope that is not within another one.
    pub fn new() -> Self {
        Self {
            scope: Arc::new(Scope {
                parent: None,
                tracker: TaskTracker::new(),
                ending: CancellationToken::new(),
                dropping: Arc::default(),
                running: Running::default(),
            }),
        }
    }

    /// A scope within this one. It is cancelled with this one, and a drain of this one waits for its tasks. It can also
    /// be drained alone (one listener, one tunnel).
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            scope: Arc::new(Scope {
                parent: Some(self.scope.clone()),
                tracker: TaskTracker::new(),
                ending: self.scope.ending.child_token(),
                dropping: self.scope.dropping.child(),
                running: Running::default(),
            }),
        }
    }

    /// Runs a future as a task, inside the current span. A panic in it is logged as an error, and ends only that task.
    ///
    /// Logs name the kind of task by `name`. You can spawn into a scope that is being drained: a connection may need
    /// one more task. After a drain is given up, the future is dropped and never polled.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_on(&Handle::current(), name, future)
    }

    /// Spawns a task that is dropped when the scope is cancelled. Use it for loops that do not end by themselves.
    pub fn spawn_until_cancelled<F>(&self, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_until_cancelled_on(&Handle::current(), name, future)
    }

    /// The same as [`spawn_until_cancelled`](Self::spawn_until_cancelled), on another runtime than the caller's.
    pub fn spawn_until_cancelled_on<F>(&self, runtime: &Handle, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let cancelled = self.cancelled();
        self.spawn_on(runtime, name, async move {
            tokio::select! {
                () = future => {}
                () = cancelled => {}
            }
        })
    }

    /// The same as [`spawn`](Self::spawn), on another runtime than the caller's.
    pub fn spawn_on<F>(&self, runtime: &Handle, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Taken here and not in the task, so that a drain which begins before the first poll waits for the task too.
        let tracked: Vec<_> = self.scopes().map(|scope| (scope.tracker.token(), scope.running.enter(name))).collect();
        let dropping = Arc::clone(&self.scope.dropping);
        let task = async move {
            let _tracked = tracked;
            let outcome = Kept::new(dropping, catch_panic(future)).await;
            if let Some(Err(panic)) = outcome {
                tracing::error!(task = name, panic = panic_text(&*panic), "task panicked");
            }
        };
        runtime.spawn(task.instrument(Span::current()))
    }

    /// Cancels the tasks of this scope and of the scopes within it. Returns at once.
    pub fn cancel(&self) {
        self.scope.ending.cancel();
    }

    /// Whether the tasks have been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.scope.ending.is_cancelled()
    }

    /// Completes when the tasks are cancelled. It is cheap: call it for each wait.
    pub fn cancelled(&self) -> WaitForCancellationFutureOwned {
        self.scope.ending.clone().cancelled_owned()
    }

    /// How many tasks run, those of inner scopes included.
    pub fn running(&self) -> usize {
        self.scope.tracker.len()
    }

    /// Cancels the tasks and waits until none is left. At the `deadline`, or when `hurry` is ready (a second signal:
    /// `signals.recv()`), the remaining tasks are dropped. [`Drained`] counts them by name. Their owners log why they
    /// were still running.
    pub async fn drain<H: Future>(&self, deadline: Duration, hurry: H) -> Drained {
        self.cancel();
        self.scope.tracker.close();
        let drained = tokio::select! {
            biased;
            () = self.scope.tracker.wait() => return Drained::Clean,
            _ = hurry => Drained::Hurried(self.scope.running.names()),
            () = tokio::time::sleep(deadline) => Drained::Deadline(self.scope.running.names()),
        };
        self.scope.dropping.begin();
        // Dropping takes no time, unless a task blocks its thread. Such a task must not prevent the process from
        // ending.
        let _ = tokio::time::timeout(DROP_TIMEOUT, self.scope.tracker.wait()).await;
        drained
    }

    /// This scope and those around it.
    fn scopes(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(&*self.scope), |scope| scope.parent.as_deref())
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

/// Polls a future until it is ready or panics.
async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    // Unwind-safe because the future is never polled after a panic: `poll_fn` is ready then.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The message of `panic!`, which has one of two types unless `panic_any` was called.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "(not a text)"
    }
}

#[cfg(test)]
mod tests;
