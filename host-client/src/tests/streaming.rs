//! Tests of bodies: resets, stalled readers, uploads.

use std::future::poll_fn;

use bytes::Bytes;
use h2::Reason;
use http_body::Frame;
use tokio::sync::mpsc;

use super::*;

/// A body whose chunks the test sends.
fn fed() -> (mpsc::UnboundedSender<Result<&'static str, BoxError>>, RequestBody) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Result<&'static str, BoxError>>();
    let frames = Feed(Box::new(move |cx| {
        receiver.poll_recv(cx).map(|item| Some(item?.map(|text| Frame::data(Bytes::from(text)))))
    }));
    (sender, stream(frames))
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

struct Feed(Box<dyn FnMut(&mut std::task::Context<'_>) -> Polled + Send>);

impl http_body::Body for Feed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Polled {
        (self.0)(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_watch_resets_it_at_once() {
    let (_world, mut server, host, _tasks) = one(100);
    let (sending, received) = begin(&host, &mut server, "/api/v1/pods?watch=1").await;
    let mut stream = received.begin();
    stream.send_data("{}".into(), false).unwrap();
    let mut body = sending.await.unwrap().unwrap().into_body();
    assert!(body.frame().await.is_some());
    let before = tokio::time::Instant::now();
    drop(body);
    assert_eq!(poll_fn(|cx| stream.poll_reset(cx)).await.unwrap(), Reason::CANCEL);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(host.statistics().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_before_the_response_resets_too() {
    let (_world, mut server, host, _tasks) = one(100);
    let (sending, mut received) = begin(&host, &mut server, "/api/v1/pods").await;
    drop(sending);
    assert_eq!(poll_fn(|cx| received.respond.poll_reset(cx)).await.unwrap(), Reason::CANCEL);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_affects_only_its_stream() {
    let (_world, mut server, host, _tasks) = one(250);
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let (sending, received) = begin(&host, &mut server, "/large").await;
        let mut stream = received.begin();
        stream.send_data(Bytes::from(vec![0; 4 * 1024 * 1024]), false).unwrap();
        stalled.push((sending.await.unwrap().unwrap(), stream));
    }
    settle().await;
    let (sending, received) = begin(&host, &mut server, "/small").await;
    assert_eq!(received.connection, 0);
    received.answer("small");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "small");
    assert_eq!(host.statistics().connections_begun, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_read_does_not_end_the_others() {
    let (_world, mut server, host, _tasks) = one(250);
    let (sending, received) = begin(&host, &mut server, "/slow?watch=1").await;
    let mut slow = received.begin();
    let unread = sending.await.unwrap().unwrap();
    let (sending, received) = begin(&host, &mut server, "/quick?watch=1").await;
    assert_eq!(received.connection, 0);
    let mut quick = received.begin();
    let mut read = sending.await.unwrap().unwrap().into_body();
    // This is far more than h2's own budget for small frames.
    for _ in 0..2_000 {
        slow.send_data("{\"type\":\"BOOKMARK\"}\n".into(), false).unwrap();
        quick.send_data("{}".into(), false).unwrap();
        assert_eq!(read.frame().await.unwrap().unwrap().into_data().unwrap(), "{}");
    }
    slow.send_data(Bytes::new(), true).unwrap();
    assert_eq!(text(unread).await.lines().count(), 2_000);
}

#[tokio::test(start_paused = true)]
async fn bytes_and_streams_arrive_completely() {
    let (_world, mut server, host, _tasks) = one(100);
    let large = Bytes::from(vec![7; 3 * 1024 * 1024]);
    for body in [full(large.clone()), stream(full(large.clone()))] {
        let sending = send(&host, Request::post("/x").body(body).unwrap());
        let mut received = server.next_request().await;
        let mut length = 0;
        while let Some(bytes) = received.request.body_mut().data().await {
            length += bytes.as_ref().unwrap().len();
            received.request.body_mut().flow_control().release_capacity(bytes.unwrap().len()).unwrap();
        }
        assert_eq!(length, large.len());
        received.answer("stored");
        assert_eq!(text(sending.await.unwrap().unwrap()).await, "stored");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_body_is_the_callers_fault_and_never_complete() {
    let (_world, mut server, host, _tasks) = one(100);
    let (feed, body) = fed();
    let sending = send(&host, Request::post("/x").body(body).unwrap());
    feed.send(Ok("half")).unwrap();
    let mut received = server.next_request().await;
    assert_eq!(received.request.body_mut().data().await.unwrap().unwrap(), "half");
    feed.send(Err("the client left".into())).unwrap();
    assert!(received.request.body_mut().data().await.unwrap().is_err());
    let error = sending.await.unwrap().unwrap_err();
    assert!(matches!(error, HostError::Body(_)), "{error:?}");
    assert_eq!((error.fault(), error.unsent()), (Fault::Client, false));
}

#[tokio::test(start_paused = true)]
async fn a_response_can_precede_the_end_of_the_body() {
    let (_world, mut server, host, _tasks) = one(100);
    let (feed, body) = fed();
    let sending = send(&host, Request::post("/x").body(body).unwrap());
    server.next_request().await.answer_with(413, "too large");
    let response = sending.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(response).await, "too large");
    feed.closed().await;
}
