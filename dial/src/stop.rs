//! Signals that end a tunnel.

use tokio_util::sync::CancellationToken;

/// Signals that a tunnel must accept no more streams, and must end with its last one. Clones share the signals.
#[derive(Clone, Debug)]
pub struct Stop {
    end: CancellationToken,
    replaced: CancellationToken,
}

// === impl Stop ===

impl Stop {
    /// A tunnel that must end when `end` is cancelled.
    pub fn new(end: &CancellationToken) -> Self {
        Self { end: end.child_token(), replaced: CancellationToken::new() }
    }

    /// Signals that another tunnel replaces this one. Its streams may run to completion.
    pub(crate) fn replace(&self) {
        self.replaced.cancel();
    }

    /// Completes when the tunnel must accept no more streams.
    pub async fn requested(&self) {
        tokio::select! {
            () = self.end.cancelled() => {}
            () = self.replaced.cancelled() => {}
        }
    }

    /// Completes when streams that do not end by themselves, such as watches, must end, too.
    pub async fn ends_streams(&self) {
        self.end.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    async fn is_ready(future: impl Future<Output = ()>) -> bool {
        let mut future = pin!(future);
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
    }

    #[tokio::test]
    async fn a_replaced_tunnel_keeps_its_streams() {
        let end = CancellationToken::new();
        let (one, other) = (Stop::new(&end), Stop::new(&end));
        assert!(!is_ready(one.requested()).await);
        one.replace();
        assert!(is_ready(one.clone().requested()).await && !is_ready(one.ends_streams()).await);
        assert!(!is_ready(other.requested()).await);
        end.cancel();
        assert!(is_ready(one.ends_streams()).await && is_ready(other.requested()).await);
    }
}
