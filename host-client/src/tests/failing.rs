//! Tests of refusals, GOAWAY, broken connections, and other addresses.

use h2::Reason;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::super::testing::Behaviour;
use super::*;

/// Two API servers and a client that prefers the first.
fn two() -> (World, FakeServer, FakeServer, Host, Tasks) {
    let (world, tasks) = (World::default(), Tasks::new());
    let (a, b) = (world.server("a", 100), world.server("b", 100));
    let host = world.host(&[&a, &b], &tasks);
    (world, a, b, host, tasks)
}

fn post(body: RequestBody) -> Request<RequestBody> {
    Request::post("/api/v1/namespaces").body(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_goes_to_another_connection() {
    let (_world, mut server, host, _tasks) = one(100);
    for body in [empty(), full("{}")] {
        let sending = send(&host, post(body));
        let mut refused = server.next_request().await;
        refused.respond.send_reset(Reason::REFUSED_STREAM);
        let received = server.next_request().await;
        assert_ne!(received.connection, refused.connection);
        received.answer("created");
        assert_eq!(text(sending.await.unwrap().unwrap()).await, "created");
    }
    assert_eq!(host.statistics().retries, 2);
}

#[tokio::test(start_paused = true)]
async fn a_started_stream_is_not_sent_again_and_the_error_has_the_reason() {
    let (_world, mut server, host, _tasks) = one(100);
    let sending = send(&host, post(stream(full("{}"))));
    server.next_request().await.respond.send_reset(Reason::REFUSED_STREAM);
    let error = sending.await.unwrap().unwrap_err();
    assert!(matches!(error, HostError::Refused { .. }), "{error:?}");
    assert_eq!((error.unsent(), error.fault()), (true, Fault::Host));
}

#[tokio::test(start_paused = true)]
async fn repeated_refusals_are_returned() {
    let (_world, mut server, host, _tasks) = one(100);
    let mut sending = send(&host, get("/x"));
    let mut received = 0;
    let error = loop {
        tokio::select! {
            mut refused = server.next_request() => {
                received += 1;
                refused.respond.send_reset(Reason::REFUSED_STREAM);
            }
            sent = &mut sending => break sent.unwrap().unwrap_err(),
        }
    };
    assert!(error.unsent());
    assert_eq!(received, limits::MAX_RESENDS + 1);
}

#[tokio::test(start_paused = true)]
async fn streams_continue_after_goaway_and_new_ones_use_another_connection() {
    let (_world, mut server, host, _tasks) = one(100);
    let (sending, received) = begin(&host, &mut server, "/old").await;
    let mut old = received.begin();
    let old_response = sending.await.unwrap().unwrap();
    server.go_away();
    settle().await;
    let (sending, received) = begin(&host, &mut server, "/new").await;
    assert_eq!(received.connection, 1);
    received.answer("new");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "new");
    old.send_data("old".into(), true).unwrap();
    assert_eq!(text(old_response).await, "old");
    settle().await;
    assert_eq!(host.statistics().connections_open, 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_a_goaway_is_sent_again() {
    let (_world, mut server, host, _tasks) = one(100);
    server.behave(Behaviour::Raw);
    let sending = send(&host, post(full("{}")));
    let mut raw = server.raw().await;
    read_until_headers(&mut raw).await;
    server.behave(Behaviour::Serve);
    // GOAWAY, last stream 0, NO_ERROR.
    raw.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let received = server.next_request().await;
    assert_eq!(received.request.method(), "POST");
    received.answer("created");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "created");
    drop(raw);
}

/// Sends the minimum of HTTP/2 that a client needs to send a request.
async fn read_until_headers(raw: &mut DuplexStream) {
    let mut preface = [0; 24];
    raw.read_exact(&mut preface).await.unwrap();
    // Empty SETTINGS.
    raw.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    loop {
        let mut header = [0; 9];
        raw.read_exact(&mut header).await.unwrap();
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        raw.read_exact(&mut payload).await.unwrap();
        match (header[3], header[4]) {
            (1, _) => return,
            (4, 0) => raw.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).await.unwrap(),
            (6, 0) => {
                raw.write_all(&[0, 0, 8, 6, 1, 0, 0, 0, 0]).await.unwrap();
                raw.write_all(&payload).await.unwrap();
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_request_after_a_kill_succeeds() {
    let (_world, mut a, mut b, host, _tasks) = two();
    let (sending, received) = begin(&host, &mut a, "/1").await;
    received.answer("a");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "a");
    a.kill();
    // The kernel reports at once that a process has ended.
    settle().await;
    for body in [empty(), full("{}"), stream(full("{}"))] {
        let sending = send(&host, post(body));
        b.next_request().await.answer("b");
        assert_eq!(text(sending.await.unwrap().unwrap()).await, "b");
    }
    let up: Vec<_> = host.statistics().servers.iter().map(|server| server.up).collect();
    assert_eq!(up, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_sent_again_only_if_it_reads() {
    let (_world, mut a, mut b, host, _tasks) = two();
    let (reading, _received) = begin(&host, &mut a, "/read").await;
    let writing = send(&host, post(full("{}")));
    let _received = a.next_request().await;
    a.kill();
    let again = b.next_request().await;
    assert_eq!(again.path(), "/read");
    again.answer("b");
    assert_eq!(text(reading.await.unwrap().unwrap()).await, "b");
    let error = writing.await.unwrap().unwrap_err();
    assert!(matches!(&error, HostError::Broken { address, .. } if *address == a.address()));
    assert_eq!((error.unsent(), error.fault()), (false, Fault::Host));
    assert!(!b.has_request());
}

#[tokio::test(start_paused = true)]
async fn probes_find_an_address_that_is_up_again() {
    let (world, mut a, mut b, host, _tasks) = two();
    a.kill();
    let (sending, received) = begin(&host, &mut b, "/1").await;
    received.answer("b");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "b");
    let dials = world.dials();
    tokio::time::sleep(Duration::from_secs(600)).await;
    // At most every 15 to 30 s after the first few.
    assert!((20..60).contains(&(world.dials() - dials)), "{}", world.dials() - dials);
    a.behave(Behaviour::Serve);
    // The server listens before it is ready.
    for (code, up) in [(500, false), (403, false), (200, true)] {
        let probe = a.next_request().await;
        assert_eq!(probe.path(), "/readyz");
        let (sending, received) = begin(&host, &mut b, "/1").await;
        received.answer("b");
        assert_eq!(text(sending.await.unwrap().unwrap()).await, "b");
        probe.answer_with(code, "");
        settle().await;
        assert_eq!(host.statistics().servers[0].up, up, "{code}");
    }
    let (sending, received) = begin(&host, &mut a, "/2").await;
    received.answer("a");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_request_does_not_wait_for_a_probe() {
    let (_world, mut a, host, _tasks) = one(100);
    a.kill();
    host.send(get("/1")).await.unwrap_err();
    a.behave(Behaviour::Serve);
    let probe = a.next_request().await;
    assert_eq!(probe.path(), "/readyz");
    let (sending, received) = begin(&host, &mut a, "/2").await;
    received.answer("a");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "a");
}

#[tokio::test(start_paused = true)]
async fn the_only_address_is_tried_even_if_it_is_down() {
    let (_world, mut a, host, _tasks) = one(100);
    a.kill();
    let error = host.send(get("/1")).await.unwrap_err();
    assert_eq!((error.unsent(), error.fault()), (true, Fault::Host));
    assert_eq!(error.to_string(), "no API server can be reached (https://a:6443: cannot connect: connection refused)");
    a.behave(Behaviour::Serve);
    let (sending, received) = begin(&host, &mut a, "/2").await;
    received.answer("a");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "a");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_respond_times_out() {
    let (_world, a, mut b, host, _tasks) = two();
    a.behave(Behaviour::Silent);
    let began = tokio::time::Instant::now();
    let (sending, received) = begin(&host, &mut b, "/1").await;
    assert_eq!(began.elapsed(), limits::HANDSHAKE_TIMEOUT);
    received.answer("b");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "b");
    let (_sending, _received) = begin(&host, &mut b, "/2").await;
    assert_eq!(began.elapsed(), limits::HANDSHAKE_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn pings_detect_a_dead_connection() {
    let (_world, mut a, mut b, host, _tasks) = two();
    a.behave(Behaviour::Raw);
    let sending = send(&host, get("/1"));
    let mut raw = a.raw().await;
    read_until_headers(&mut raw).await;
    let began = tokio::time::Instant::now();
    // It no longer responds, so the request goes to the other one.
    let received = b.next_request().await;
    assert!(began.elapsed() <= Duration::from_secs(30));
    received.answer("b");
    assert_eq!(text(sending.await.unwrap().unwrap()).await, "b");
    assert!(!host.statistics().servers[0].up);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_without_streams_is_not_waited_for() {
    let (_world, _server, host, _tasks) = one(0);
    let error = host.send(get("/1")).await.unwrap_err();
    let HostError::Unreachable(unreachable) = &error else { panic!("{error:?}") };
    assert!(matches!(unreachable.attempts()[0].reason, ConnectReason::Full));
}

#[tokio::test(start_paused = true)]
async fn headers_of_a_pod_break_no_other_request() {
    let (_world, mut server, host, _tasks) = one(100);
    let (brief, held) = begin(&host, &mut server, "/api/v1/namespaces/a/configmaps/b").await;
    let (other, held_too) = begin(&host, &mut server, "/api/v1/namespaces/a/services/b/proxy/").await;
    let (proxied, long) = begin(&host, &mut server, "/api/v1/namespaces/a/pods/b/proxy/").await;
    // More than h2 accepts. A GET is sent twice.
    long.answer_with_header(1 << 20);
    server.next_request().await.answer_with_header(1 << 20);
    assert!(proxied.await.unwrap().is_err());
    held.answer("brief");
    held_too.answer("other");
    assert_eq!(text(brief.await.unwrap().unwrap()).await, "brief");
    assert_eq!(text(other.await.unwrap().unwrap()).await, "other");
}
