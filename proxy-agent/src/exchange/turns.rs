//! Large bodies, one after the other.
//!
//! Mapping a body of megabytes takes tens of milliseconds, and what is made of it meanwhile has many times its length. So
//! a virtual cluster has one thread for all its large bodies, which is none of those that serve everybody.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Bodies of this size take less than a turn would.
pub(super) const SMALL: usize = 256 * 1024;

/// Works on a body only in its turn, and waits for the host without one.
pub(super) struct InTurn<'a, F> {
    turn: Option<&'a Mutex<()>>,
    work: F,
}

// === impl InTurn ===

impl<'a, F> InTurn<'a, F> {
    pub(super) fn new(turn: &'a Mutex<()>, body: &[u8], work: F) -> Self {
        Self { turn: (body.len() > SMALL).then_some(turn), work }
    }
}

impl<F: Future + Unpin> Future for InTurn<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(turn) = self.turn else { return Pin::new(&mut self.work).poll(cx) };
        let mut work = || {
            // Nothing is kept behind it that a panic could leave half-done.
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            Pin::new(&mut self.work).poll(cx)
        };
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(work),
            // There is no other thread that could serve anybody meanwhile.
            _ => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;

    static LARGE: [u8; SMALL + 1] = [0; SMALL + 1];

    /// The only thread of the runtime serves others while a large body is worked on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_are_served_meanwhile() {
        let (sender, receiver) = mpsc::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let turn = Mutex::new(());
            let work = Box::pin(async move { receiver.recv_timeout(Duration::from_secs(60)).is_ok() });
            InTurn::new(&turn, &LARGE, work).await
        });
        tasks.spawn(async move { sender.send(()).is_ok() });
        assert_eq!(tasks.join_all().await, [true, true]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn each_has_its_turn() {
        static TURN: Mutex<()> = Mutex::new(());
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        let work = || async {
            for _ in 0..100 {
                assert_eq!(AT_ONCE.fetch_add(1, Ordering::SeqCst), 0);
                std::thread::yield_now();
                AT_ONCE.fetch_sub(1, Ordering::SeqCst);
                // Who waits has no turn.
                tokio::task::yield_now().await;
            }
        };
        let tasks: JoinSet<()> = (0..4).map(|_| InTurn::new(&TURN, &LARGE, Box::pin(work()))).collect();
        tasks.join_all().await;
    }
}
