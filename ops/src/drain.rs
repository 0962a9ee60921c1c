//! Tasks that end: everything a binary runs beside its main function is spawned through [`Tasks`], so that shutting
//! down is "cancel, wait, give up at the deadline" and never leaves a connection cut off by chance.
//!
//! This is the one place that spawns on a runtime. What is *not* here: what a task does when it is cancelled. A
//! listener stops accepting, a tunnel sends GOAWAY; each sees [`Tasks::cancelled`] and ends in its own way.

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

use running::Running;
pub use signal::{Signal, Signals, signal};

/// A scope of tasks: they can be told to end, and waited for. Clones are the same scope.
#[derive(Clone, Debug)]
pub struct Tasks {
    scope: Arc<Scope>,
}

#[derive(Debug)]
struct Scope {
    parent: Option<Arc<Self>>,
    tracker: TaskTracker,
    /// "End soon": cancelled when a drain begins.
    ending: CancellationToken,
    /// "End now": cancelled when it is given up; tasks are dropped at their next await.
    dropping: CancellationToken,
    running: Running,
}

/// How long tasks may take to be dropped once a drain is given up.
const DROPPING: Duration = Duration::from_secs(1);

/// How a drain ended. Either way no task of the scope is left, but for one that never comes back to an await.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every task ended by itself.
    Clean,
    /// The deadline passed, and what was still running was dropped: task names and how many of each.
    Deadline(Vec<(&'static str, usize)>),
    /// The operator was in a hurry (a second signal), and what was still running was dropped.
    Hurried(Vec<(&'static str, usize)>),
}

// === impl Tasks ===

impl Tasks {
    /// A scope of its own.
    pub fn new() -> Self {
        Self {
            scope: Arc::new(Scope {
                parent: None,
                tracker: TaskTracker::new(),
                ending: CancellationToken::new(),
                dropping: CancellationToken::new(),
                running: Running::default(),
            }),
        }
    }

    /// A scope within this one: it ends when this one does, this one's drain waits for its tasks, and it can be
    /// drained alone (one listener, one tunnel).
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            scope: Arc::new(Scope {
                parent: Some(self.scope.clone()),
                tracker: TaskTracker::new(),
                ending: self.scope.ending.child_token(),
                dropping: self.scope.dropping.child_token(),
                running: Running::default(),
            }),
        }
    }

    /// Runs a future as a task, inside the current span. A panic in it is logged as an error and ends that task alone.
    ///
    /// `name` says in logs which kind of task it was. Spawning into a scope that is being drained is allowed: a
    /// connection may need a last helper. When draining has been given up, the future is dropped unpolled.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_on(&Handle::current(), name, future)
    }

    /// The same on another runtime than that of the caller.
    pub fn spawn_on<F>(&self, runtime: &Handle, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Taken here and not in the task: a drain that begins before the first poll must wait for it too.
        let tracked: Vec<_> = self.scopes().map(|scope| (scope.tracker.token(), scope.running.enter(name))).collect();
        let dropping = self.scope.dropping.clone();
        let task = async move {
            let _tracked = tracked;
            let outcome = dropping.run_until_cancelled(catch_panic(future)).await;
            if let Some(Err(panic)) = outcome {
                tracing::error!(task = name, panic = panic_text(&*panic), "task panicked");
            }
        };
        runtime.spawn(task.instrument(Span::current()))
    }

    /// Tells the tasks of this scope, and of those within it, to end. Returns at once.
    pub fn cancel(&self) {
        self.scope.ending.cancel();
    }

    /// Whether the tasks have been told to end.
    pub fn is_cancelled(&self) -> bool {
        self.scope.ending.is_cancelled()
    }

    /// Ends when the tasks are told to end. Cheap; make one per wait.
    pub fn cancelled(&self) -> WaitForCancellationFutureOwned {
        self.scope.ending.clone().cancelled_owned()
    }

    /// How many tasks run, those of inner scopes included.
    pub fn running(&self) -> usize {
        self.scope.tracker.len()
    }

    /// Tells the tasks to end and waits until none is left. At the `deadline`, or when `hurry` is ready (a second
    /// signal: `signals.recv()`), the rest is dropped. The reason why a task is still running is for its owner to log;
    /// [`Drained`] counts them by name.
    pub async fn drain<H: Future>(&self, deadline: Duration, hurry: H) -> Drained {
        self.cancel();
        self.scope.tracker.close();
        let drained = tokio::select! {
            biased;
            () = self.scope.tracker.wait() => return Drained::Clean,
            _ = hurry => Drained::Hurried(self.scope.running.names()),
            () = tokio::time::sleep(deadline) => Drained::Deadline(self.scope.running.names()),
        };
        self.scope.dropping.cancel();
        // Dropping takes no time, unless a task holds its thread; that one must not keep the process from ending.
        let _ = tokio::time::timeout(DROPPING, self.scope.tracker.wait()).await;
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

/// The message of `panic!`, which is one of two types unless `panic_any` was called.
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
