//! Scenarios: the changes that a consumer gets during sequences of lists, watches and failures.

use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::tests::{answer, api};
use super::*;
use crate::api::source::{OVERTIME, WATCH_SECONDS};
use crate::testing::FakeServer;

/// A change in a short form: `+a/1` (name and UID), `-a/1`, `synced`.
fn short(change: &Change) -> String {
    let (sign, object) = match change {
        Change::Applied(object) => ('+', object),
        Change::Deleted(object) => ('-', object),
        Change::Synced => return "synced".into(),
    };
    let text = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
    format!("{sign}{}/{}", text("name"), text("uid"))
}

async fn expect(reflector: &mut Reflector, expected: &[&str]) {
    for expected in expected {
        assert_eq!(short(&reflector.next().await), *expected);
    }
}

fn object(name_and_uid: &str, version: u64) -> Value {
    let (name, uid) = name_and_uid.split_once('/').unwrap();
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}})
}

/// Responds to the next request, which must be a list.
async fn list(server: &mut FakeServer, version: u64, items: &[&str]) {
    let received = server.next_request().await;
    assert_eq!(received.path(), "/x?limit=500");
    let items: Vec<_> = items.iter().map(|item| object(item, version)).collect();
    answer(received, 200, &json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}));
}

/// Begins the response to the next request, which must be a watch from this version.
async fn watch(server: &mut FakeServer, version: u64) -> SendStream<Bytes> {
    let received = server.next_request().await;
    let from = format!("/x?watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=");
    assert!(received.path().starts_with(&from), "{}", received.path());
    received.begin()
}

fn event(stream: &mut SendStream<Bytes>, event_type: &str, object: &Value) {
    let frame = format!("{}\n", json!({"type": event_type, "object": object}));
    stream.send_data(frame.into(), false).unwrap();
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "so", "code": code})
}

fn end(mut stream: SendStream<Bytes>) {
    stream.send_data(Bytes::new(), true).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_by_its_changes() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default());
    let serve = async {
        list(&mut server, 5, &["a/1", "b/2"]).await;
        let mut stream = watch(&mut server, 5).await;
        event(&mut stream, "MODIFIED", &object("a/1", 6));
        event(&mut stream, "DELETED", &object("b/2", 7));
        event(&mut stream, "ADDED", &object("b/3", 8));
        event(&mut stream, "BOOKMARK", &json!({"metadata": {"resourceVersion": "20"}}));
        end(stream);
        // The watch continues from the bookmark.
        let mut stream = watch(&mut server, 20).await;
        event(&mut stream, "DELETED", &object("a/1", 21));
        stream
    };
    let listen = expect(&mut reflector, &["+a/1", "+b/2", "synced", "+a/1", "-b/2", "+b/3", "-a/1"]);
    tokio::join!(listen, serve);
}

#[tokio::test(start_paused = true)]
async fn objects_in_other_namespaces_need_no_memory() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default()).only_in(|namespace| namespace == "ours");
    let object_in = |namespace: &str, name_and_uid: &str, version| {
        let mut object = object(name_and_uid, version);
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let serve = async {
        let mut items: Vec<_> = (0..1000).map(|number| object_in("theirs", &format!("n{number}/u"), 5)).collect();
        items.push(object_in("ours", "a/1", 5));
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": items});
        answer(server.next_request().await, 200, &list);
        let mut stream = watch(&mut server, 5).await;
        event(&mut stream, "ADDED", &object_in("theirs", "b/2", 6));
        event(&mut stream, "DELETED", &object_in("theirs", "n0/u", 7));
        event(&mut stream, "MODIFIED", &object_in("ours", "a/1", 8));
        stream
    };
    let listen = expect(&mut reflector, &["+a/1", "synced", "+a/1"]);
    let _ended = tokio::join!(listen, serve);
    assert_eq!(format!("{:?}", reflector.known).matches("Key").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn missed_changes_are_returned_after_410() {
    for in_the_watch in [true, false] {
        let (mut server, api, _tasks) = api();
        let mut reflector = Reflector::new(&api, "/x", Selection::default());
        let serve = async {
            list(&mut server, 5, &["a/1", "b/2", "c/3"]).await;
            let mut ended = None;
            if in_the_watch {
                event(ended.insert(watch(&mut server, 5).await), "ERROR", &status(410));
            } else {
                answer(server.next_request().await, 410, &status(410));
            }
            // `a` was replaced, and `b` was deleted.
            list(&mut server, 50, &["a/9", "c/3"]).await;
            ended
        };
        let listen =
            expect(&mut reflector, &["+a/1", "+b/2", "+c/3", "synced", "-a/1", "+a/9", "+c/3", "-b/2", "synced"]);
        tokio::join!(listen, serve);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_failures() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default());
    let serve = async {
        for _ in 0..10 {
            answer(server.next_request().await, 503, &status(503));
        }
        list(&mut server, 5, &[]).await;
        let mut stream = watch(&mut server, 5).await;
        event(&mut stream, "ADDED", &object("a/1", 6));
        event(&mut stream, "ERROR", &status(500));
        answer(server.next_request().await, 429, &status(429));
        let mut stream = watch(&mut server, 6).await;
        event(&mut stream, "ADDED", &object("b/2", 7));
        // The watch ends in the middle of an event.
        stream.send_data("{\"type\":\"ADDED\"".into(), false).unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        server.break_connections();
        let mut stream = watch(&mut server, 7).await;
        event(&mut stream, "ADDED", &object("c/3", 8));
        stream
    };
    let listen = expect(&mut reflector, &["synced", "+a/1", "+b/2", "+c/3"]);
    tokio::join!(listen, serve);
}

#[tokio::test(start_paused = true)]
async fn invalid_events_cause_a_new_list() {
    for nonsense in
        ["[1]\n", "{\"type\":\"NEW\",\"object\":{}}\n", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n"]
    {
        let (mut server, api, _tasks) = api();
        let mut reflector = Reflector::new(&api, "/x", Selection::default());
        let serve = async {
            list(&mut server, 5, &["a/1"]).await;
            let mut stream = watch(&mut server, 5).await;
            stream.send_data(nonsense.into(), false).unwrap();
            list(&mut server, 6, &[]).await;
        };
        tokio::join!(expect(&mut reflector, &["+a/1", "synced", "-a/1", "synced"]), serve);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default());
    let began = Instant::now();
    let serve = async {
        list(&mut server, 5, &[]).await;
        let silent = watch(&mut server, 5).await;
        let mut stream = watch(&mut server, 5).await;
        event(&mut stream, "ADDED", &object("a/1", 6));
        (silent, stream)
    };
    tokio::join!(expect(&mut reflector, &["synced", "+a/1"]), serve);
    let limit = Duration::from_secs(2 * u64::from(WATCH_SECONDS)) + 2 * OVERTIME;
    assert!(began.elapsed() <= limit, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn next_is_cancel_safe() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default());
    let serve = async {
        list(&mut server, 5, &["a/1"]).await;
        let mut stream = watch(&mut server, 5).await;
        for version in 6..200 {
            event(&mut stream, "MODIFIED", &object("a/1", version));
            tokio::task::yield_now().await;
        }
        stream
    };
    let listen = async {
        let mut versions = Vec::new();
        while versions.last().is_none_or(|last| last != "199") {
            // The future is polled once and dropped repeatedly, as `select!` does.
            let mut next = std::pin::pin!(reflector.next::<Value>());
            let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(next.as_mut().poll(cx))).await;
            match polled {
                std::task::Poll::Ready(Change::Applied(object)) => {
                    versions.push(object["metadata"]["resourceVersion"].as_str().unwrap().to_owned());
                }
                std::task::Poll::Ready(_) => {}
                std::task::Poll::Pending => tokio::task::yield_now().await,
            }
        }
        versions
    };
    let (versions, _stream) = tokio::join!(listen, serve);
    let expected: Vec<_> = (5..200).map(|version: u64| version.to_string()).collect();
    assert_eq!(versions, expected);
}

/// Whoever may write a Namespace can choose how deep its managed fields are.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_parsed_does_not_hide_the_others() {
    let (mut server, api, _tasks) = api();
    let mut reflector = Reflector::new(&api, "/x", Selection::default());
    let nested = |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let item = |name: &str, more: &str| {
        format!("{{\"metadata\":{{\"name\":\"{name}\",\"uid\":\"1\",\"resourceVersion\":\"5\"{more}}}}}")
    };
    let managed = format!(",\"managedFields\":[{{\"fieldsV1\":{}}}]", nested(200));
    let items = [item("a", ""), item("b", &managed), item("c", &format!(",\"x\":{}", nested(200))), item("d", "")];
    let serve = async {
        let text = format!("{{\"metadata\":{{\"resourceVersion\":\"5\"}},\"items\":[{}]}}", items.join(","));
        server.next_request().await.answer_with(200, text);
    };
    let listen = expect(&mut reflector, &["+a/1", "+b/1", "-c/1", "+d/1", "synced"]);
    tokio::join!(listen, serve);
}
