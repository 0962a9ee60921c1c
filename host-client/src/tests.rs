//! End-to-end tests of requests, with API servers in memory and a paused clock.

mod failing;
mod streaming;
mod switching;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use ops::drain::{Drained, Tasks};
use std::task::Poll;
use std::time::Duration;
use tokio::task::yield_now;

use super::testing::{FakeServer, ReceivedRequest, World, get};
use super::*;

/// One API server and a client.
fn one(max_streams: u32) -> (World, FakeServer, Host, Tasks) {
    let (world, tasks) = (World::default(), Tasks::new());
    let server = world.server("a", max_streams);
    let host = world.host(&[&server], &tasks);
    (world, server, host, tasks)
}

/// Sends a request, and returns when the server has received it. The server has not responded yet.
async fn begin(host: &Host, server: &mut FakeServer, path: &str) -> (Sending, ReceivedRequest) {
    let sending = send(host, get(path));
    (sending, server.next_request().await)
}

type Sending = tokio::sync::oneshot::Receiver<Result<Response<HostBody>, HostError>>;

/// Sends a request in a separate task.
fn send(host: &Host, request: Request<RequestBody>) -> Sending {
    let (mut sender, receiver) = tokio::sync::oneshot::channel();
    let sent = host.clone();
    host.tasks().spawn("test", async move {
        tokio::select! {
            result = sent.send(request) => drop(sender.send(result)),
            () = sender.closed() => {}
        }
    });
    receiver
}

async fn text(response: Response<HostBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Lets every other task run until it waits.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered() {
    let (_world, mut server, host, _tasks) = one(100);
    let (sending, received) = begin(&host, &mut server, "/api/v1/pods?limit=1").await;
    assert_eq!(received.request.uri(), "https://a:6443/api/v1/pods?limit=1");
    received.answer("hello");
    let response = sending.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(host.statistics().in_flight, 1);
    assert_eq!(text(response).await, "hello");
    assert_eq!((host.statistics().in_flight, host.statistics().servers[0].streams), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_short_request_never_waits_for_a_thousand_watches() {
    let (_world, mut server, host, _tasks) = one(100);
    let mut watches = Vec::new();
    for _ in 0..1000 {
        watches.push(send(&host, get("/api/v1/pods?watch=1")));
    }
    let mut streams = Vec::new();
    for _ in 0..1000 {
        streams.push(server.next_request().await.begin());
    }
    let mut bodies = Vec::new();
    for watch in watches {
        bodies.push(watch.await.unwrap().unwrap());
    }
    // 88 of 100 are used.
    assert_eq!(host.statistics().servers[0].connections, 12);
    let before = host.statistics().connections_begun;
    let (sending, received) = begin(&host, &mut server, "/version").await;
    received.answer("1.36");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "1.36");
    assert_eq!(host.statistics().connections_begun, before + 1);
}

#[tokio::test(start_paused = true)]
async fn an_ended_stream_frees_its_permit() {
    let (_world, mut server, host, _tasks) = one(2);
    for _ in 0..50 {
        let (first, received_first) = begin(&host, &mut server, "/1").await;
        let (second, received_second) = begin(&host, &mut server, "/2").await;
        received_first.answer("1");
        received_second.answer("2");
        assert_eq!(text(first.await.unwrap().unwrap()).await, "1");
        assert_eq!(text(second.await.unwrap().unwrap()).await, "2");
    }
    assert_eq!(host.statistics().connections_begun, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_cancel_the_connection() {
    let (world, mut server, host, _tasks) = one(100);
    let mut leaving = Box::pin(host.send(get("/1")));
    let polled = std::future::poll_fn(|cx| Poll::Ready(leaving.as_mut().poll(cx).is_pending()));
    assert!(polled.await);
    drop(leaving);
    let staying = send(&host, get("/2"));
    let received = server.next_request().await;
    assert_eq!(received.path(), "/2");
    received.answer("2");
    assert_eq!(text(staying.await.unwrap().unwrap()).await, "2");
    assert_eq!(world.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn all_idle_connections_but_one_are_closed() {
    let (_world, mut server, host, _tasks) = one(2);
    let mut open = Vec::new();
    for path in ["/1", "/2", "/3", "/4", "/5", "/w?watch=true"] {
        let (sending, received) = begin(&host, &mut server, path).await;
        let stream = received.begin();
        open.push((sending.await.unwrap().unwrap(), stream));
    }
    assert_eq!(host.statistics().connections_open, 4);
    drop(open);
    tokio::time::sleep(limits::IDLE_TIMEOUT + 3 * limits::UPKEEP_INTERVAL).await;
    assert_eq!(host.statistics().connections_open, 1);
    let (sending, received) = begin(&host, &mut server, "/6").await;
    assert_eq!(received.connection, 0);
    received.answer("6");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "6");
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_streams_and_then_closes() {
    let (_world, mut server, host, tasks) = one(100);
    let (sending, received) = begin(&host, &mut server, "/watch?watch=1").await;
    let mut stream = received.begin();
    let response = sending.await.unwrap().unwrap();
    let draining = tasks.clone();
    let (sender, drained) = tokio::sync::oneshot::channel();
    Tasks::new().spawn("test", async move {
        let outcome = draining.drain(Duration::from_secs(30), std::future::pending::<()>()).await;
        drop(sender.send(outcome));
    });
    settle().await;
    stream.send_data("late".into(), true).unwrap();
    assert_eq!(text(response).await, "late");
    assert_eq!(drained.await.unwrap(), Drained::Clean);
    assert_eq!(host.statistics().connections_open, 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_clone_closes_its_connections() {
    let (_world, mut server, host, tasks) = one(100);
    let (sending, received) = begin(&host, &mut server, "/1").await;
    received.answer("1");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "1");
    drop(host);
    while tasks.running() > 0 {
        yield_now().await;
    }
}
