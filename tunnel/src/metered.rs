//! Counts the bytes of a connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gets the numbers of bytes.
pub trait Meter {
    /// Bytes have arrived.
    fn received(&self, bytes: u64);
    /// Bytes were written.
    fn sent(&self, bytes: u64);
}

/// Counts the bytes that arrive.
#[derive(Debug, Default)]
pub struct Received(AtomicU64);

/// A connection whose bytes are counted.
#[derive(Debug)]
pub struct Metered<S, M> {
    io: S,
    meter: Arc<M>,
}

// === impl Received ===

impl Received {
    /// The number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Meter for Received {
    fn received(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sent(&self, _: u64) {}
}

// === impl Metered ===

impl<S, M> Metered<S, M> {
    /// Counts the bytes of `io`.
    pub fn new(io: S, meter: Arc<M>) -> Self {
        Self { io, meter }
    }
}

impl<S: AsyncRead + Unpin, M: Meter> AsyncRead for Metered<S, M> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, out);
        self.meter.received((out.filled().len() - before) as u64);
        read
    }
}

impl<S: AsyncWrite + Unpin, M: Meter> AsyncWrite for Metered<S, M> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.meter.sent(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices))?;
        self.meter.sent(written as u64);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[derive(Default)]
    struct Both {
        received: AtomicU64,
        sent: AtomicU64,
    }

    impl Meter for Both {
        fn received(&self, bytes: u64) {
            self.received.fetch_add(bytes, Ordering::Relaxed);
        }

        fn sent(&self, bytes: u64) {
            self.sent.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn both_directions_are_counted() {
        let both = Arc::new(Both::default());
        let (near, mut far) = duplex(4);
        let mut near = Metered::new(near, Arc::clone(&both));
        let exchange = async {
            near.write_all(b"a request").await.unwrap();
            let _ = near.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"b")]).await.unwrap();
            near.shutdown().await.unwrap();
            near.read_to_end(&mut Vec::new()).await.unwrap()
        };
        let peer = async {
            let mut request = Vec::new();
            far.read_to_end(&mut request).await.unwrap();
            far.write_all(b"a response").await.unwrap();
            drop(far);
            request.len() as u64
        };
        let (read, sent) = tokio::join!(exchange, peer);
        assert_eq!(read, 10);
        assert_eq!((both.received.load(Ordering::Relaxed), both.sent.load(Ordering::Relaxed)), (10, sent));
    }
}
