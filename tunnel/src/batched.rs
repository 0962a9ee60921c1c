//! Writes many frames at once.

mod cancellations;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use cancellations::CancellationDelay;

/// A connection above TLS on which the frames of many streams leave together.
///
/// `h2` flushes after every DATA frame, and a TLS stream makes a record and a system call of every flush. Within a turn
/// ([`Turns`]), flushes are delayed to its end: thirty small responses that are ready together are one record and one
/// system call. Large writes are not copied, and an idle connection has no buffer. Outside of turns, flushes are not
/// delayed.
///
/// If the link is thin ([`Batched::delaying_cancellations`]), cancellations (RST_STREAM with the code CANCEL) wait a little
/// longer for other frames. A client that ends a watch often begins the next one at once, and a TLS record of its own adds
/// 22 bytes to the 13 of the frame.
#[derive(Debug)]
pub struct Batched<S>(Arc<Mutex<State<S>>>);

/// One poll of what writes to a [`Batched`] connection.
#[derive(Debug)]
pub struct Turns<S>(Arc<Mutex<State<S>>>);

#[derive(Debug)]
struct State<S> {
    io: S,
    /// Bytes that were accepted and are not written yet.
    waiting: BytesMut,
    /// Whether a turn is in progress.
    in_turn: bool,
    /// The error of the flush at the end of a turn. The next turn reports it.
    failed: Option<io::ErrorKind>,
    /// Whether `io` may hold bytes that it has not sent.
    unflushed: bool,
    /// `None` if cancellations are not delayed.
    cancellations: Option<CancellationDelay>,
}

/// The maximum number of bytes that wait: the payload of four full TLS records (RFC 8446 section 5.1), which `rustls` makes
/// of one write and sends in one system call. `h2` writes the heads of all responses that are ready before their bodies. With
/// a smaller buffer, they would often be sent separately, and the peer would wake up twice.
const BATCH: usize = 64 * 1024;

/// Longer writes are not copied, because they fill TLS records by themselves: the payload of one record, in bytes. It is also
/// the initial capacity of the buffer.
const LARGE: usize = 16 * 1024;

// === impl Batched ===

impl<S> Batched<S> {
    /// Wraps a connection. The first value is for the writer of frames, and the second one for the task that polls the writer.
    pub fn new(io: S) -> (Self, Turns<S>) {
        Self::with(io, None)
    }

    /// As [`Batched::new`], for a connection whose bytes are worth more than the 20 ms by which cancellations are late.
    pub fn delaying_cancellations(io: S) -> (Self, Turns<S>) {
        Self::with(io, Some(CancellationDelay::default()))
    }

    fn with(io: S, cancellations: Option<CancellationDelay>) -> (Self, Turns<S>) {
        let state = Arc::new(Mutex::new(State {
            io,
            waiting: BytesMut::new(),
            in_turn: false,
            failed: None,
            unflushed: false,
            cancellations,
        }));
        (Self(Arc::clone(&state)), Turns(state))
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        lock(&self.0)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Batched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let state = &mut *self.lock();
        if !ready!(state.poll_room(cx, bytes.len()))? {
            state.unflushed = true;
            return Pin::new(&mut state.io).poll_write(cx, bytes);
        }
        state.waiting.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.lock();
        match state.failed {
            Some(kind) => Poll::Ready(Err(kind.into())),
            None if state.in_turn => Poll::Ready(Ok(())),
            None => state.poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.lock();
        ready!(state.poll_empty(cx))?;
        Pin::new(&mut state.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.lock();
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        if !ready!(state.poll_room(cx, bytes))? {
            state.unflushed = true;
            return Pin::new(&mut state.io).poll_write_vectored(cx, slices);
        }
        for slice in slices {
            state.waiting.extend_from_slice(slice);
        }
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().io.is_write_vectored()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Batched<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().io).poll_read(cx, out)
    }
}

// === impl Turns ===

impl<S: AsyncWrite + Unpin> Turns<S> {
    /// Calls `poll` as one turn: delays its flushes, and then flushes once.
    pub fn poll<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        lock(&self.0).in_turn = true;
        let polled = poll(cx);
        let mut state = lock(&self.0);
        state.in_turn = false;
        if state.failed.is_none()
            && !state.delays_cancellations(cx)
            && let Poll::Ready(Err(error)) = state.poll_flush(cx)
        {
            state.failed = Some(error.kind());
            cx.waker().wake_by_ref();
        }
        polled
    }
}

// === impl State ===

impl<S: AsyncWrite + Unpin> State<S> {
    /// Writes all waiting bytes.
    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unflushed |= !self.waiting.is_empty();
        while !self.waiting.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.waiting))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.waiting.advance(written);
        }
        // An idle tunnel needs no buffer.
        self.waiting = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(cx))?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }

    /// Whether the bytes wait for more. If so, the task of `cx` wakes up when they must be written. Bytes that `io` has not sent must
    /// not wait for cancellations behind them.
    fn delays_cancellations(&mut self, cx: &mut Context<'_>) -> bool {
        let Self { unflushed, waiting, cancellations, .. } = self;
        cancellations.as_mut().is_some_and(|delay| delay.delays(if *unflushed { &[] } else { waiting }, cx))
    }

    /// Makes room for this many bytes. Returns `false` if they are written without a copy.
    fn poll_room(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<io::Result<bool>> {
        if let Some(kind) = self.failed {
            return Poll::Ready(Err(kind.into()));
        }
        if bytes > LARGE || self.waiting.len() + bytes > BATCH {
            ready!(self.poll_empty(cx))?;
        }
        if bytes > LARGE {
            return Poll::Ready(Ok(false));
        }
        if self.waiting.is_empty() {
            self.waiting.reserve(LARGE);
        }
        Poll::Ready(Ok(true))
    }
}

fn lock<S>(state: &Mutex<State<S>>) -> MutexGuard<'_, State<S>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::cancellations::{CANCELLATION, CANCELLATION_DELAY};
    use super::*;

    /// Records writes, or fails. Nothing can be read.
    #[derive(Default)]
    struct Written {
        writes: Vec<Vec<u8>>,
        broken: bool,
        /// Whether flushes are pending.
        congested: bool,
    }

    impl AsyncWrite for Written {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            if self.broken {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            self.writes.push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.congested { Poll::Pending } else { Poll::Ready(Ok(())) }
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn small_writes_of_a_turn_leave_together_at_its_end() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut batched, turns) = Batched::new(Written::default());
        let polled = turns.poll(&mut cx, |cx| {
            for part in ["headers ", "data ", "headers ", "data"] {
                assert!(Pin::new(&mut batched).poll_write(cx, part.as_bytes()).is_ready());
                assert!(Pin::new(&mut batched).poll_flush(cx).is_ready());
            }
            Poll::Ready(7)
        });
        assert_eq!(polled, Poll::Ready(7));
        assert_eq!(batched.lock().io.writes, [b"headers data headers data"]);
        assert_eq!(batched.lock().waiting.capacity(), 0, "an idle connection holds nothing");
    }

    /// One turn that writes this.
    fn turn(batched: &mut Batched<Written>, turns: &Turns<Written>, cx: &mut Context<'_>, bytes: &[u8]) {
        let written = turns.poll(cx, |cx| match bytes {
            [] => Poll::Ready(Ok(0)),
            bytes => Pin::new(batched).poll_write(cx, bytes),
        });
        assert!(matches!(written, Poll::Ready(Ok(written)) if written == bytes.len()));
    }

    #[tokio::test(start_paused = true)]
    async fn cancellations_wait_for_the_next_frame() {
        let (mut batched, turns) = Batched::delaying_cancellations(Written::default());
        poll_fn(|cx| {
            turn(&mut batched, &turns, cx, &CANCELLATION);
            turn(&mut batched, &turns, cx, &CANCELLATION);
            assert!(batched.lock().io.writes.is_empty());
            turn(&mut batched, &turns, cx, b"headers");
            Poll::Ready(())
        })
        .await;
        let together = [&CANCELLATION[..], &CANCELLATION, b"headers"].concat();
        assert_eq!(batched.lock().io.writes, [together]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_cancellation_is_written_soon() {
        let (mut batched, turns) = Batched::delaying_cancellations(Written::default());
        let begun = Instant::now();
        for _ in 0..2 {
            poll_fn(|cx| {
                turn(&mut batched, &turns, cx, &CANCELLATION);
                Poll::Ready(())
            })
            .await;
            // Only the timer wakes this task.
            poll_fn(|cx| {
                turn(&mut batched, &turns, cx, &[]);
                let is_written = !std::mem::take(&mut batched.lock().io.writes).is_empty();
                if is_written { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        let elapsed = begun.elapsed();
        assert!((2 * CANCELLATION_DELAY..3 * CANCELLATION_DELAY).contains(&elapsed), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn cancellations_do_not_delay_what_is_not_flushed() {
        let (mut batched, turns) = Batched::delaying_cancellations(Written { congested: true, ..Written::default() });
        poll_fn(|cx| {
            turn(&mut batched, &turns, cx, b"data");
            turn(&mut batched, &turns, cx, &CANCELLATION);
            assert_eq!(batched.lock().io.writes, [&b"data"[..], &CANCELLATION]);
            batched.lock().io.congested = false;
            turn(&mut batched, &turns, cx, &[]);
            turn(&mut batched, &turns, cx, &CANCELLATION);
            assert_eq!(batched.lock().io.writes.len(), 2);
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn outside_of_turns_a_flush_is_a_flush() {
        let (mut batched, _turns) = Batched::new(Written::default());
        for part in ["preface", "settings"] {
            batched.write_all(part.as_bytes()).await.unwrap();
            batched.flush().await.unwrap();
        }
        assert_eq!(batched.lock().io.writes, [&b"preface"[..], b"settings"]);
    }

    #[tokio::test]
    async fn a_large_write_passes_by_behind_what_waited() {
        let large = vec![b'x'; LARGE + 1];
        let (mut batched, _turns) = Batched::new(Written::default());
        batched.write_all(b"first").await.unwrap();
        batched.write_all(&large).await.unwrap();
        batched.write_all(b"last").await.unwrap();
        batched.shutdown().await.unwrap();
        assert_eq!(batched.lock().io.writes, [&b"first"[..], &large, b"last"]);
    }

    #[test]
    fn a_broken_connection_shows_in_the_next_turn() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut batched, turns) = Batched::new(Written { broken: true, ..Written::default() });
        let written = turns.poll(&mut cx, |cx| Pin::new(&mut batched).poll_write(cx, b"frame"));
        assert!(matches!(written, Poll::Ready(Ok(5))));
        let flushed = turns.poll(&mut cx, |cx| Pin::new(&mut batched).poll_flush(cx));
        assert!(matches!(flushed, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe));
    }

    #[tokio::test]
    async fn a_narrow_way_gets_every_byte_once() {
        let (near, mut far) = duplex(100);
        let (mut batched, _turns) = Batched::new(near);
        let sent: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let mut received = Vec::new();
        let writer = async {
            for (number, chunk) in sent.chunks(7_000).enumerate() {
                let (left, right) = chunk.split_at(number * 3);
                let written = batched.write_vectored(&[IoSlice::new(left), IoSlice::new(right)]).await.unwrap();
                batched.write_all(&chunk[written..]).await.unwrap();
            }
            batched.shutdown().await.unwrap();
        };
        tokio::join!(writer, async { far.read_to_end(&mut received).await.unwrap() });
        assert_eq!(received, sent);
    }
}
