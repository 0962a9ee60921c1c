//! Reads bytes from a socket before rustls requests them.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// A socket below TLS, read in large pieces.
///
/// rustls takes 4 KiB with each read (`READ_SIZE` in its `msgs/deframer/buffers.rs`): five system calls for one full
/// record, a thousand for each 4 MB of a list. This type reads once and serves rustls from memory. Its buffer never
/// exceeds `MAX_READ`, and an idle connection has none.
#[derive(Debug)]
pub struct ReadAhead<S> {
    io: S,
    buffer: BytesMut,
    /// How much to read: more if the last read filled its buffer.
    size: usize,
}

/// The first read of a burst: a request, or one full record.
const MIN_READ: usize = 16 * 1024 + 512;

/// The maximum length of a read, and so the maximum buffer of a connection.
const MAX_READ: usize = 4 * MIN_READ;

// === impl ReadAhead ===

impl<S> ReadAhead<S> {
    /// Wraps a socket from which nothing was read before.
    pub fn new(io: S) -> Self {
        Self { io, buffer: BytesMut::new(), size: MIN_READ }
    }

    /// Wraps a socket from which these bytes were already read.
    pub fn after(read: &[u8], io: S) -> Self {
        Self { io, buffer: BytesMut::from(read), size: MIN_READ }
    }

    /// The same bytes from another form of the socket.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn try_map<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<ReadAhead<T>> {
        let Self { io, buffer, size } = self;
        Ok(ReadAhead { io: change(io)?, buffer, size })
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    /// Reads more, and returns everything that rustls has not consumed yet.
    ///
    /// # Errors
    /// Those of the socket; `UnexpectedEof` at its end.
    pub async fn peek_more(&mut self) -> io::Result<&[u8]> {
        if self.buffer.len() >= MAX_READ {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.buffer.reserve(MIN_READ);
        if poll_fn(|cx| poll_read_buf(Pin::new(&mut self.io), cx, &mut self.buffer)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(&self.buffer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.buffer.is_empty() {
            this.buffer.clear();
            this.buffer.reserve(this.size);
            match poll_read_buf(Pin::new(&mut this.io), cx, &mut this.buffer) {
                Poll::Ready(read) => {
                    let read = read?;
                    this.size = if read >= this.size { MAX_READ } else { MIN_READ };
                }
                Poll::Pending => {
                    // Thousands of connections may wait, so a waiting one holds no memory.
                    (this.buffer, this.size) = (BytesMut::new(), MIN_READ);
                    return Poll::Pending;
                }
            }
        }
        let taken = this.buffer.len().min(out.remaining());
        out.put_slice(&this.buffer[..taken]);
        this.buffer.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
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
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Always has more data, and counts the reads.
    struct Endless(usize);

    impl AsyncRead for Endless {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            self.0 += 1;
            out.put_slice(&vec![7; out.remaining()]);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn reads_are_few_and_large() {
        let mut ahead = ReadAhead::new(Endless(0));
        let mut piece = [0; 4_096];
        for _ in 0..((MIN_READ + 2 * MAX_READ) / piece.len()) {
            ahead.read_exact(&mut piece).await.unwrap();
        }
        assert_eq!(ahead.io.0, 3);
        assert!(ahead.buffer.capacity() <= MAX_READ);
    }

    #[tokio::test]
    async fn bytes_arrive_in_order_and_waiting_needs_no_buffer() {
        let (mut far, near) = duplex(100_000);
        let mut ahead = ReadAhead::new(near);
        let sent: Vec<u8> = (0..500_000_u32).map(|number| (number % 251) as u8).collect();
        let copy = sent.clone();
        let writer = async move {
            far.write_all(&copy).await.unwrap();
            far
        };
        let reader = async {
            let mut received = vec![0; sent.len()];
            ahead.read_exact(&mut received).await.unwrap();
            assert_eq!(received, sent);
            poll_fn(|cx| {
                let mut byte = [0];
                assert!(Pin::new(&mut ahead).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending());
                Poll::Ready(())
            })
            .await;
            assert_eq!(ahead.buffer.capacity(), 0);
        };
        let (_far, ()) = tokio::join!(writer, reader);
    }
    #[tokio::test]
    async fn peeked_bytes_are_read_again() {
        let (mut far, near) = duplex(100_000);
        let mut ahead = ReadAhead::after(b"one ", near);
        far.write_all(b"two ").await.unwrap();
        assert_eq!(ahead.peek_more().await.unwrap(), b"one two ");
        far.write_all(b"three").await.unwrap();
        assert_eq!(ahead.peek_more().await.unwrap(), b"one two three");
        drop(far);
        assert_eq!(ahead.peek_more().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut moved = ahead.try_map(Ok).unwrap();
        let mut read = String::new();
        moved.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "one two three");
        let mut endless = ReadAhead::new(Endless(0));
        while endless.peek_more().await.is_ok() {}
        assert!(endless.buffer.len() <= MAX_READ + MIN_READ);
    }
}
