//! What waits in `h2` for a connection that takes nothing.

#![expect(clippy::disallowed_methods, reason = "a test has no drain to leak past")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use h2::RecvStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tunnel::outbound::send_body;
use tunnel::pipe::{Traffic, pipe};
use tunnel::{Budget, FairBudget, Inbound, Outbound, Share, settings};

const KIB: usize = 1024;
const CHUNK: usize = 8 * KIB;

/// The bytes of all responses that the sender has not freed.
#[derive(Clone, Debug, Default)]
struct Live(Arc<AtomicUsize>);

/// Bytes that count.
struct Counted(Vec<u8>, Live);

/// So many chunks that count.
struct Chunks(Live, usize);

/// Both ends of a tunnel whose connection can be stopped.
struct Link {
    client: SendRequest<Bytes>,
    accepted: mpsc::UnboundedReceiver<(Request<RecvStream>, h2::server::SendResponse<Bytes>)>,
    /// Whether the connection takes bytes from the agent.
    flows: watch::Sender<bool>,
}

impl Live {
    fn bytes(&self, length: usize) -> Bytes {
        self.0.fetch_add(length, Ordering::Relaxed);
        Bytes::from_owner(Counted(vec![b'x'; length], self.clone()))
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.0.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// Carries bytes one way while it may.
async fn relay(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut flows: watch::Receiver<bool>,
) {
    let mut buffer = [0; 4 * KIB];
    loop {
        flows.wait_for(|flows| *flows).await.unwrap();
        match from.read(&mut buffer).await {
            Ok(read) if read > 0 => to.write_all(&buffer[..read]).await.unwrap(),
            _ => return,
        }
    }
}

impl Link {
    async fn new() -> Self {
        let ((near, left), (right, far)) = (duplex(4 * KIB), duplex(4 * KIB));
        let flows = watch::Sender::new(true);
        let ((from_near, to_near), (from_far, to_far)) = (tokio::io::split(left), tokio::io::split(right));
        tokio::spawn(relay(from_near, to_far, watch::Sender::new(true).subscribe()));
        tokio::spawn(relay(from_far, to_near, flows.subscribe()));
        let (opened, accepted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut connection = settings::server().handshake::<_, Bytes>(far).await.unwrap();
            while let Some(Ok(stream)) = connection.accept().await {
                let _ = opened.send(stream);
            }
        });
        let (client, connection) = settings::client().handshake::<_, Bytes>(near).await.unwrap();
        tokio::spawn(async move { connection.await.unwrap() });
        Self { client, accepted, flows }
    }

    async fn open(&mut self) -> (ResponseFuture, Inbound, h2::SendStream<Bytes>) {
        let (response, _) = self.client.send_request(Request::get("https://x/").body(()).unwrap(), true).unwrap();
        let (request, mut respond) = self.accepted.recv().await.unwrap();
        let stream = respond.send_response(Response::new(()), false).unwrap();
        (response, Inbound::new(request.into_body(), &Budget::new(usize::MAX)), stream)
    }

    /// Opens a stream, and answers it with so many bytes in chunks of 8 KiB.
    async fn get(&mut self, length: usize, live: &Live, share: &Share) -> (ResponseFuture, JoinHandle<bool>) {
        let (response, _, stream) = self.open().await;
        let body = StreamBody::new(Chunks(live.clone(), length / CHUNK));
        let outbound = Outbound::charged(stream, share.clone());
        (response, tokio::spawn(async move { send_body(body, outbound).await.is_ok() }))
    }
}

impl Stream for Chunks {
    type Item = Result<Frame<Bytes>, Infallible>;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(left) = self.1.checked_sub(1) else { return Poll::Ready(None) };
        self.1 = left;
        Poll::Ready(Some(Ok(Frame::data(self.0.bytes(CHUNK)))))
    }
}

/// Until nothing more can happen.
async fn settle() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}

async fn read(response: ResponseFuture) -> usize {
    let body = response.await.unwrap().into_body();
    Inbound::new(body, &Budget::new(usize::MAX)).collect().await.unwrap().to_bytes().len()
}

#[tokio::test(start_paused = true)]
async fn responses_that_wait_for_a_slow_connection_take_no_more_than_their_share() {
    let mut link = Link::new().await;
    let (budget, live) = (FairBudget::new(1024 * KIB, 512 * KIB), Live::default());
    let share = budget.share();
    link.flows.send_replace(false);
    let mut sent = Vec::new();
    for _ in 0..100 {
        sent.push(link.get(1024 * KIB, &live, &share).await);
    }
    settle().await;
    assert!(share.held() > 500 * KIB, "{}", share.held());
    // Each sender has one more chunk in its hand.
    let bound = 512 * KIB + 100 * CHUNK;
    assert!(live.now() <= bound, "{} of {bound}", live.now());

    // Another cluster finds room.
    let other = budget.share();
    let (other_response, other_sent) = link.get(64 * KIB, &live, &other).await;
    settle().await;
    assert!(other_sent.is_finished());

    link.flows.send_replace(true);
    assert_eq!(read(other_response).await, 64 * KIB);
    for (response, sent) in sent {
        assert_eq!(read(response).await, 1024 * KIB);
        assert!(sent.await.unwrap());
    }
    assert_eq!((budget.held(), live.now()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_no_room() {
    let mut link = Link::new().await;
    let (budget, live) = (FairBudget::new(256 * KIB, 128 * KIB), Live::default());
    let share = budget.share();
    let mut stalled = Vec::new();
    for _ in 0..10 {
        let (response, sent) = link.get(2048 * KIB, &live, &share).await;
        stalled.push((response.await.unwrap(), sent));
    }
    settle().await;
    assert_eq!((share.held(), stalled.iter().any(|(_, sent)| sent.is_finished())), (0, false));
    let (response, _) = link.get(1024 * KIB, &live, &share).await;
    assert_eq!(read(response).await, 1024 * KIB);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_waits_for_no_room() {
    let mut link = Link::new().await;
    let (budget, live) = (FairBudget::new(64 * KIB, 32 * KIB), Live::default());
    let share = budget.share();
    link.flows.send_replace(false);
    let (_first, _) = link.get(1024 * KIB, &live, &share).await;
    let (second, sent) = link.get(1024 * KIB, &live, &share).await;
    settle().await;
    assert!(share.reserve(CHUNK).is_none() && !sent.is_finished());
    drop(second);
    settle().await;
    assert!(sent.is_finished());
}

/// Many short reads are many chunks, and each takes memory of its own.
#[tokio::test(start_paused = true)]
async fn short_reads_of_a_pipe_are_charged_with_what_they_take() {
    let mut link = Link::new().await;
    let budget = FairBudget::new(64 * KIB, 32 * KIB);
    let share = budget.share();
    let (response, inbound, stream) = link.open().await;
    link.flows.send_replace(false);
    let (mut pod, socket) = duplex(1);
    let outbound = Outbound::charged(stream, share.clone());
    tokio::spawn(async move { pipe(socket, inbound, outbound, &mut Traffic::default()).await });
    let wrote = tokio::spawn(async move { pod.write_all(&[b'x'; 4 * KIB]).await });
    settle().await;
    assert!(share.held() > 30 * KIB && !wrote.is_finished(), "{}", share.held());
    link.flows.send_replace(true);
    assert_eq!(read(response).await, 4 * KIB);
    assert_eq!(budget.held(), 0);
}
