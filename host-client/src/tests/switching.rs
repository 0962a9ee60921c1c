//! Tests of upgrades. The API server's side reads and writes raw bytes.

use http::header::{CONNECTION, UPGRADE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::super::testing::Behaviour;
use super::*;

const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec?command=sh";

fn exec() -> Request<RequestBody> {
    let request = Request::get(EXEC).header(CONNECTION, "Upgrade").header(UPGRADE, "SPDY/3.1");
    request.header("authorization", "Bearer theirs").body(empty()).unwrap()
}

/// Reads up to the end of a head.
async fn head(raw: &mut DuplexStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(raw.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test(start_paused = true)]
async fn bytes_are_forwarded_in_both_directions_after_101() {
    let (_world, mut server, host, tasks) = one(100);
    server.behave(Behaviour::Raw);
    let serve = async {
        let mut raw = server.raw().await;
        let received = head(&mut raw).await.to_ascii_lowercase();
        assert!(received.starts_with(&format!("get {EXEC} http/1.1\r\n")), "{received}");
        assert!(received.contains("\r\nhost: a:6443\r\n"), "{received}");
        assert!(received.contains("\r\nupgrade: spdy/3.1\r\n") && received.contains("\r\nconnection: upgrade\r\n"));
        assert!(!received.contains("theirs"));
        // The first bytes may come with the head.
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nfirst";
        raw.write_all(answer).await.unwrap();
        raw
    };
    let (switched, mut raw) = tokio::join!(host.switch(exec()), serve);
    let Switched::Upgraded { head, stream: mut conversation } = switched.unwrap() else { panic!("refused") };
    assert_eq!(head.headers()[UPGRADE], "SPDY/3.1");
    let mut bytes = [0; 5];
    conversation.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"first");
    conversation.write_all(b"ahoy!").await.unwrap();
    raw.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"ahoy!");
    assert_eq!(host.statistics().in_flight, 1);
    drop(conversation);
    assert_eq!(raw.read(&mut bytes).await.unwrap(), 0);
    drop(host);
    while tasks.running() > 0 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_a_body() {
    let (_world, mut server, host, _tasks) = one(100);
    server.behave(Behaviour::Raw);
    let serve = async {
        let mut raw = server.raw().await;
        head(&mut raw).await;
        raw.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
        raw
    };
    let (switched, _raw) = tokio::join!(host.switch(exec()), serve);
    let Switched::Refused(response) = switched.unwrap() else { panic!("upgraded") };
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(text(response).await, "no");
    assert_eq!(host.statistics().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_is_sent_once_to_a_working_address() {
    let (world, tasks) = (World::default(), Tasks::new());
    let (a, mut b) = (world.server("a", 100), world.server("b", 100));
    let host = world.host(&[&a, &b], &tasks);
    a.kill();
    b.behave(Behaviour::Raw);
    let serve = async {
        let mut raw = b.raw().await;
        head(&mut raw).await;
    };
    let (switched, ()) = tokio::join!(host.switch(exec()), serve);
    let error = switched.unwrap_err();
    assert!(matches!(&error, HostError::Broken { address, .. } if *address == b.address()), "{error:?}");
    assert!(!error.unsent());
    assert_eq!(world.dials(), 2);
}
