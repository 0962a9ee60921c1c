//! What a tunnel must survive, over in-memory I/O: each test is a trap that the defaults of HTTP/2 libraries fall into.

#![expect(clippy::disallowed_methods, reason = "a test has no drain to leak past")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use http_body_util::BodyExt;
use protocol::settings::MAX_FRAME;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tunnel::inbound::InboundError;
use tunnel::outbound::{SendError, send_body, send_bytes};
use tunnel::pipe::{PipeError, Traffic, pipe, pipe_session};
use tunnel::{Budget, Inbound, Owner, settings};

/// Both ends of one tunnel: streams that the client opens come out of `accepted`.
struct Pair {
    client: SendRequest<Bytes>,
    accepted: mpsc::UnboundedReceiver<(Request<RecvStream>, SendResponse<Bytes>)>,
}

type Piped = JoinHandle<Result<Traffic, PipeError>>;

impl Pair {
    async fn new() -> Self {
        let (near, far) = duplex(1024 * 1024);
        let (opened, accepted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut connection = settings::server().handshake::<_, Bytes>(far).await.unwrap();
            while let Some(Ok(stream)) = connection.accept().await {
                let _ = opened.send(stream);
            }
        });
        let (client, connection) = settings::client().handshake::<_, Bytes>(near).await.unwrap();
        tokio::spawn(async move { connection.await.unwrap() });
        Self { client, accepted }
    }

    /// Opens a stream; returns the response's body and the other side's way to send it.
    async fn open(&mut self, budget: &Arc<Budget>) -> (Inbound, SendStream<Bytes>) {
        let (response, _) = self.client.send_request(Request::get("https://x/").body(()).unwrap(), true).unwrap();
        let (_, mut respond) = self.accepted.recv().await.unwrap();
        let sender = respond.send_response(Response::new(()), false).unwrap();
        let body = response.await.unwrap().into_body();
        (Inbound::new(body, budget), sender)
    }

    /// Opens a stream that joins two sockets, as the proxy-server and the agent do it for a session. Returns the client and the
    /// host, and both pipes.
    async fn session(&mut self, budget: &Arc<Budget>) -> (DuplexStream, DuplexStream, Piped, Piped) {
        let request = Request::post("https://x/").body(()).unwrap();
        let (response, from_client) = self.client.send_request(request, false).unwrap();
        let (request, mut respond) = self.accepted.recv().await.unwrap();
        let to_client = respond.send_response(Response::new(()), false).unwrap();
        let from_agent = Inbound::new(response.await.unwrap().into_body(), budget);
        let from_tunnel = Inbound::new(request.into_body(), budget);
        let piped = |socket, inbound, outbound| {
            tokio::spawn(async move {
                let mut traffic = Traffic::default();
                pipe_session(socket, inbound, outbound, &mut traffic).await.map(|()| traffic)
            })
        };
        let ((client, near), (host, far)) = (duplex(1024), duplex(1024));
        (client, host, piped(near, from_agent, from_client), piped(far, from_tunnel, to_client))
    }

    async fn small_get(&mut self, budget: &Arc<Budget>) -> Bytes {
        let (inbound, mut sender) = self.open(budget).await;
        send_bytes(&mut sender, Bytes::from_static(b"hello"), true).await.unwrap();
        inbound.collect().await.unwrap().to_bytes()
    }
}

async fn fill(sender: &mut SendStream<Bytes>, chunk: usize) {
    // Until the stream's window is full: capacity that is not granted at once will not come without a reader.
    loop {
        sender.reserve_capacity(chunk);
        let granted = tokio::time::timeout(Duration::from_millis(50), poll_fn(|cx| sender.poll_capacity(cx)));
        match granted.await {
            Ok(Some(Ok(granted))) => sender.send_data(Bytes::from(vec![b'x'; granted.min(chunk)]), false).unwrap(),
            _ => return,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_stalled_readers_cost_their_own_streams_only() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let (inbound, mut sender) = pair.open(&budget).await;
        fill(&mut sender, 64 * 1024).await;
        stalled.push((inbound, sender));
    }
    assert_eq!(pair.small_get(&budget).await, "hello");
}

#[tokio::test(start_paused = true)]
async fn tiny_unread_frames_do_not_end_the_tunnel() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (slow, mut sender) = pair.open(&budget).await;
    for _ in 0..50_000 {
        send_bytes(&mut sender, Bytes::from_static(b"k"), false).await.unwrap();
    }
    assert_eq!(pair.small_get(&budget).await, "hello");
    let sweep = budget.sweep();
    assert!(sweep.held < 60_000, "packed, a byte costs about a byte: {sweep:?}");
    send_bytes(&mut sender, Bytes::from_static(b"!"), true).await.unwrap();
    let read = slow.collect().await.unwrap().to_bytes();
    assert_eq!(read.len(), 50_001);
    assert!(read.ends_with(b"k!"));
}

/// The consumer may hold a chunk that no budget counts.
#[tokio::test(start_paused = true)]
async fn packed_frames_leave_in_chunks_of_a_frame() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (mut slow, mut sender) = pair.open(&budget).await;
    for _ in 0..300 {
        send_bytes(&mut sender, Bytes::from(vec![b'k'; 1_000]), false).await.unwrap();
    }
    send_bytes(&mut sender, Bytes::from(vec![b'l'; 50_000]), true).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    let mut left = budget.sweep().held;
    assert!((350_000..351_000).contains(&left), "{left}");
    let mut read = Vec::new();
    while let Some(chunk) = poll_fn(|cx| slow.poll_chunk(cx)).await {
        let chunk = chunk.unwrap();
        assert!(chunk.len() <= MAX_FRAME as usize, "{}", chunk.len());
        let held = budget.sweep().held;
        assert!(held + chunk.len() <= left, "{held} of {left} after {}", chunk.len());
        left = held;
        read.extend_from_slice(&chunk);
    }
    assert_eq!((left, read.len(), &read[299_999..300_001]), (0, 350_000, &b"kl"[..]));
}

#[tokio::test(start_paused = true)]
async fn over_the_budget_the_worst_stream_goes_and_the_others_stay() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(600 * 1024);
    let (greedy, mut to_greedy) = pair.open(&budget).await;
    let (modest, mut to_modest) = pair.open(&budget).await;
    fill(&mut to_greedy, 64 * 1024).await;
    send_bytes(&mut to_modest, Bytes::from(vec![b'm'; 100_000]), true).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    let sweep = budget.sweep();
    assert_eq!(sweep.reset, 1, "{sweep:?}");
    assert!(matches!(greedy.collect().await, Err(InboundError::Evicted)));
    assert_eq!(modest.collect().await.unwrap().to_bytes().len(), 100_000);
}

/// The longest stream is not reset if another owner holds more in total.
#[tokio::test(start_paused = true)]
async fn over_the_budget_the_owner_that_holds_most_loses_its_streams() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(700 * 1024);
    let (greedy, modest) = (Owner::new(), Owner::new());
    let mut streams = Vec::new();
    for _ in 0..8 {
        let (inbound, mut sender) = pair.open(&budget).await;
        inbound.set_owner(greedy);
        send_bytes(&mut sender, Bytes::from(vec![b'g'; 100_000]), false).await.unwrap();
        streams.push((inbound, sender));
    }
    let (longest, mut sender) = pair.open(&budget).await;
    longest.set_owner(modest);
    send_bytes(&mut sender, Bytes::from(vec![b'm'; 300_000]), true).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    let sweep = budget.sweep();
    assert!(sweep.reset > 3 && sweep.reset < 8, "{sweep:?}");
    assert_eq!(longest.collect().await.unwrap().to_bytes().len(), 300_000);
}

/// Thousands of tunnels have an open stream and carry nothing.
#[tokio::test(start_paused = true)]
async fn an_idle_tunnel_is_not_swept() {
    let mut pair = Pair::new().await;
    let budget = Budget::metered(200_000);
    let swept = Arc::new(AtomicUsize::new(0));
    let (kept, counted) = (Arc::clone(&budget), Arc::clone(&swept));
    let count = move |sweep: tunnel::budget::Sweep| {
        counted.fetch_add(sweep.reset, Ordering::Relaxed);
    };
    tokio::spawn(async move { kept.keep(count).await });
    let (stalled, mut sender) = pair.open(&budget).await;
    send_bytes(&mut sender, Bytes::from(vec![b'e'; 250_000]), false).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    // Whoever reads from the network has counted nothing, so there is nothing to sweep.
    budget.received(1_000);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(swept.load(Ordering::Relaxed), 0);

    budget.received(250_000);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(swept.load(Ordering::Relaxed), 1);
    assert!(matches!(stalled.collect().await, Err(InboundError::Evicted)));
}

#[tokio::test(start_paused = true)]
async fn a_sweep_never_steals_the_wakeup_of_a_waiting_reader() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (mut inbound, mut sender) = pair.open(&budget).await;
    let reader = tokio::spawn(async move {
        let mut read = 0;
        while let Some(frame) = inbound.frame().await {
            read += frame.unwrap().into_data().unwrap().len();
        }
        read
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
        budget.sweep();
        send_bytes(&mut sender, Bytes::from_static(b"event"), false).await.unwrap();
        budget.sweep();
    }
    send_bytes(&mut sender, Bytes::new(), true).await.unwrap();
    assert_eq!(reader.await.unwrap(), 500);
}

/// As a watch whose task was woken, but sends a bookmark of its own before it polls the stream again.
#[tokio::test(start_paused = true)]
async fn a_sweep_finds_data_whose_reader_was_woken_and_does_something_else() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(200_000);
    let (mut inbound, mut sender) = pair.open(&budget).await;
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(inbound.poll_chunk(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!((budget.sweep().held, wakes.count()), (0, 0));

    send_bytes(&mut sender, Bytes::from(vec![b'e'; 100_000]), false).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    let woken = wakes.count();
    assert!(woken > 0);
    assert!((100_000..101_000).contains(&budget.sweep().held), "{:?}", budget.sweep());
    assert!(wakes.count() > woken, "the sweep has taken what the reader was woken for");

    send_bytes(&mut sender, Bytes::from(vec![b'e'; 150_000]), false).await.unwrap();
    assert_eq!(pair.small_get(&budget).await, "hello");
    assert_eq!(budget.sweep().reset, 1);
    let polled = inbound.poll_chunk(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Some(Err(InboundError::Evicted)))));
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_ends_a_silent_body() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (inbound, sender) = pair.open(&budget).await;
    drop(inbound);
    let silent = http_body_util::StreamBody::new(Pending);
    assert!(matches!(send_body(silent, sender).await, Err(SendError::Closed(_))));
}

/// A body that never says anything, like a watch at night.
struct Pending;

impl futures_core::Stream for Pending {
    type Item = Result<http_body::Frame<Bytes>, std::convert::Infallible>;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn half_close_passes_through_a_pipe() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (response, request_body) =
        pair.client.send_request(Request::post("https://x/").body(()).unwrap(), false).unwrap();
    let (request, mut respond) = pair.accepted.recv().await.unwrap();
    let mut to_client = respond.send_response(Response::new(()), false).unwrap();
    let from_agent = Inbound::new(response.await.unwrap().into_body(), &budget);

    let (mut client, socket) = duplex(1024);
    let piped = tokio::spawn(async move {
        let mut traffic = Traffic::default();
        pipe(socket, from_agent, request_body, &mut traffic).await.map(|()| traffic)
    });

    client.write_all(b"all of the question").await.unwrap();
    client.shutdown().await.unwrap();
    let question = Inbound::new(request.into_body(), &budget).collect().await.unwrap().to_bytes();
    assert_eq!(question, "all of the question");

    send_bytes(&mut to_client, Bytes::from_static(b"the answer"), true).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "the answer");
    let traffic = piped.await.unwrap().unwrap();
    assert_eq!((traffic.into_tunnel, traffic.from_tunnel), (19, 10));
}

/// The pod of a session exits, and its client keeps the connection open.
#[tokio::test(start_paused = true)]
async fn a_session_ends_for_a_client_that_stays_when_the_host_has_ended_it() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (mut client, mut host, near, far) = pair.session(&budget).await;
    host.write_all(b"exited").await.unwrap();
    host.shutdown().await.unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "exited");

    // What the client says in the meantime still arrives.
    client.write_all(b"goodbye").await.unwrap();
    let mut heard = [0; 7];
    host.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"goodbye");

    let traffic = tokio::time::timeout(Duration::from_secs(60), near).await.unwrap().unwrap().unwrap();
    assert_eq!((traffic.into_tunnel, traffic.from_tunnel), (7, 6));
    tokio::time::timeout(Duration::from_secs(60), far).await.unwrap().unwrap().unwrap();
    assert!(client.write_all(b"more").await.is_err(), "the proxy-server has closed the connection");
}

/// The agent ends both directions first: it has sent everything, and resets the one that it does not read.
#[tokio::test(start_paused = true)]
async fn a_session_that_the_agent_ends_is_whole() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (response, from_client) =
        pair.client.send_request(Request::post("https://x/").body(()).unwrap(), false).unwrap();
    let (request, mut respond) = pair.accepted.recv().await.unwrap();
    let mut to_client = respond.send_response(Response::new(()), false).unwrap();
    let from_agent = Inbound::new(response.await.unwrap().into_body(), &budget);
    send_bytes(&mut to_client, Bytes::from_static(b"exited"), true).await.unwrap();
    drop((request, respond, to_client));

    let (mut client, near) = duplex(1024);
    pipe_session(near, from_agent, from_client, &mut Traffic::default()).await.unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "exited");
}

/// The other way round: a client that leaves gets no more.
#[tokio::test(start_paused = true)]
async fn a_session_ends_for_a_pod_that_stays_when_the_client_has_ended_it() {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (mut client, mut host, near, far) = pair.session(&budget).await;
    client.shutdown().await.unwrap();
    assert_eq!(host.read(&mut [0; 1]).await.unwrap(), 0);
    tokio::time::timeout(Duration::from_secs(60), near).await.unwrap().unwrap().unwrap();
    let _either_way = tokio::time::timeout(Duration::from_secs(60), far).await.unwrap().unwrap();
    assert!(host.write_all(b"more").await.is_err(), "the agent has closed the connection");
}

/// A socket whose peer has closed it: it takes nothing more, and then its last words are read.
struct Closed {
    written_to: bool,
    last_words: Vec<&'static [u8]>,
    /// As a connection that the peer closed while there was something to read for it.
    is_reset: bool,
    waker: Option<Waker>,
}

impl AsyncWrite for Closed {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<std::io::Result<usize>> {
        self.written_to = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Closed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if !self.written_to {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match self.last_words.pop() {
            Some(words) => buf.put_slice(words),
            None if self.is_reset => return Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into())),
            None => {}
        }
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn last_words_are_heard_though_nobody_listens() {
    for is_reset in [false, true] {
        last_words(is_reset).await;
    }
}

async fn last_words(is_reset: bool) {
    let mut pair = Pair::new().await;
    let budget = Budget::new(usize::MAX);
    let (response, mut from_client) =
        pair.client.send_request(Request::post("https://x/").body(()).unwrap(), false).unwrap();
    let (request, mut respond) = pair.accepted.recv().await.unwrap();
    let to_client = respond.send_response(Response::new(()), false).unwrap();
    // It is a hold on the stream, too.
    drop(respond);
    let from_agent = Inbound::new(response.await.unwrap().into_body(), &budget);
    let from_tunnel = Inbound::new(request.into_body(), &budget);

    let socket = Closed { written_to: false, last_words: vec![b"words", b"last "], is_reset, waker: None };
    let far = tokio::spawn(async move { pipe(socket, from_tunnel, to_client, &mut Traffic::default()).await });
    let (mut client, near) = duplex(1024);
    // The client takes its leave, and keeps its direction open.
    send_bytes(&mut from_client, Bytes::from_static(b"goodbye"), false).await.unwrap();
    let near = tokio::spawn(async move { pipe(near, from_agent, from_client, &mut Traffic::default()).await });
    let mut heard = [0; 10];
    client.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"last words", "reset: {is_reset}");
    assert_eq!(far.await.unwrap().is_err(), is_reset);
    drop(client);
    let _either_way = near.await.unwrap();
}
