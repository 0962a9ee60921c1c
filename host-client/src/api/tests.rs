//! Tests of calls, with an API server in memory.

use bytes::Bytes;
use h2::server::SendResponse;
use http::Response as Head;
use kube_wire::status::Reason;
use ops::drain::Tasks;
use serde_json::json;

use serde_json::Value;

use super::calls::{CALL_TIMEOUT, MAX_PAGE, MAX_RESPONSE};
use super::*;
use crate::testing::{FakeServer, ReceivedRequest, World};

/// An API server and a client of it.
pub(super) fn api() -> (FakeServer, Api, Tasks) {
    let (world, tasks) = (World::default(), Tasks::new());
    let server = world.server("a", 100);
    let api = Api::new(world.host(&[&server], &tasks));
    (server, api, tasks)
}

/// Responds with an object.
pub(super) fn answer(received: ReceivedRequest, code: u16, object: &Value) {
    received.answer_with(code, object.to_string());
}

async fn body_of(received: &mut ReceivedRequest) -> Value {
    let mut bytes = Vec::new();
    while let Some(chunk) = received.request.body_mut().data().await {
        bytes.extend_from_slice(&chunk.unwrap());
    }
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_written_and_read() {
    let (mut server, api, _tasks) = api();
    let object = json!({"metadata": {"name": "a"}});
    let path = "/api/v1/namespaces";
    let named = "/api/v1/namespaces/a";
    let written = [
        ("POST", path, "application/json"),
        ("PUT", named, "application/json"),
        ("PATCH", named, "application/merge-patch+json"),
        ("DELETE", named, "application/json"),
    ];
    for (method, path, content_type) in written {
        let call = async {
            match method {
                "POST" => api.create(path, &object).await,
                "PUT" => api.update(path, &object).await,
                "PATCH" => api.patch(path, PatchKind::Merge, &object).await,
                _ => api.delete::<Value>(path, &object).await,
            }
        };
        let serve = async {
            let mut received = server.next_request().await;
            assert_eq!((received.request.method().as_str(), received.path().as_str()), (method, path));
            assert_eq!(received.request.headers()["content-type"], content_type);
            assert!(received.request.headers()["user-agent"].to_str().unwrap().starts_with("proxy-agent/"));
            let body = body_of(&mut received).await;
            answer(received, 200, &body);
        };
        let (result, ()) = tokio::join!(call, serve);
        assert_eq!(result.unwrap(), object);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_page_by_page() {
    let (mut server, api, _tasks) = api();
    let selection = Selection { labels: "a=b,c".into(), shape: Shape::Metadata, ..Selection::default() };
    let serve = async {
        for (next, token) in [("", "t/1"), ("&continue=t%2F1", "")] {
            let received = server.next_request().await;
            assert_eq!(received.path(), format!("/api/v1/pods?labelSelector=a%3Db%2Cc&limit=500{next}"));
            let accept = received.request.headers()["accept"].to_str().unwrap();
            assert!(accept.contains("as=PartialObjectMetadataList"), "{accept}");
            let item = json!({"metadata": {"name": token}});
            let metadata = json!({"resourceVersion": "7", "continue": token});
            answer(received, 200, &json!({"metadata": metadata, "items": [item]}));
        }
    };
    let (list, ()) = tokio::join!(api.list("/api/v1/pods", &selection), serve);
    assert_eq!(list.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pages_of_large_objects_are_short() {
    let (mut server, api, _tasks) = api();
    // It is larger than a page may be, but smaller than a response may be.
    let large = " ".repeat(MAX_PAGE);
    let serve = async {
        let mut limits = Vec::new();
        for (token, is_large) in [("", true), ("", true), ("t", false), ("", false)] {
            let received = server.next_request().await;
            limits.push(received.path().split_once('?').expect("a query").1.to_owned());
            let list = json!({"metadata": {"resourceVersion": "7", "continue": token}, "items": [{"metadata": {}}]});
            received.answer_with(200, if is_large { format!("{large}{list}") } else { list.to_string() });
        }
        for limit in ["limit=500", "limit=125", "limit=31", "limit=7", "limit=1"] {
            let received = server.next_request().await;
            assert_eq!(received.path(), format!("/api/v1/pods?{limit}"));
            received.answer_with(200, format!("{large}{}", json!({"metadata": {"resourceVersion": "7"}, "items": []})));
        }
        limits
    };
    let lists = async {
        let path = "/api/v1/pods";
        let two = api.list(path, &Selection::default()).await.unwrap();
        (two.len(), api.list(path, &Selection::default()).await.unwrap().len())
    };
    let (lengths, limits) = tokio::join!(lists, serve);
    assert_eq!(
        (lengths, limits),
        ((2, 0), ["limit=500", "limit=125", "limit=31", "limit=62&continue=t"].map(str::to_owned).to_vec())
    );
}

#[tokio::test(start_paused = true)]
async fn any_refusal_becomes_a_status() {
    let (mut server, api, _tasks) = api();
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "Conflict", "code": 409});
    for (code, body, message) in
        [(409, status.to_string(), "no"), (502, "<html>\n".into(), "<html>"), (500, String::new(), "")]
    {
        let serve = async { server.next_request().await.answer_with(code, body) };
        let (result, ()) = tokio::join!(api.get("/x"), serve);
        let error = result.unwrap_err();
        let refused = error.status().unwrap();
        assert_eq!((refused.code, refused.message.as_str()), (code, message));
        assert_eq!(error.is_conflict(), refused.reason == Reason::Conflict);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_read_from_the_header_too() {
    let (mut server, api, _tasks) = api();
    let serve = async {
        let ReceivedRequest { mut respond, .. } = server.next_request().await;
        end(&mut respond, Head::builder().status(429).header("retry-after", "3"));
    };
    let (result, ()) = tokio::join!(api.get("/x"), serve);
    assert_eq!(result.unwrap_err().status().unwrap().retry_after(), Some(3));
}

fn end(respond: &mut SendResponse<Bytes>, head: http::response::Builder) {
    drop(respond.send_response(head.body(()).unwrap(), true));
}

#[tokio::test(start_paused = true)]
async fn a_response_is_limited_in_size_and_time() {
    let (mut server, api, _tasks) = api();
    let large = Bytes::from(vec![b' '; MAX_RESPONSE + 1]);
    let serve = async { server.next_request().await.answer_with(200, large) };
    let (result, ()) = tokio::join!(api.get("/x"), serve);
    assert!(matches!(result, Err(ApiError::TooLarge { .. })), "{result:?}");
    let began = tokio::time::Instant::now();
    let (result, received) = tokio::join!(api.get("/x"), server.next_request());
    assert!(matches!(result, Err(ApiError::TimedOut)), "{result:?}");
    assert_eq!(began.elapsed(), CALL_TIMEOUT);
    drop(received);
}
