use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use protocol::blocks::{Encoder, Histories};
use protocol::encoding::ENCODING;
use protocol::prefetch::{self, LIFETIME};
use tokio::time::advance;
use tower::ServiceExt as _;

use super::super::connection::{Connection, Services};
use super::super::documents::{Key, Storing};
use super::super::fixture;
use super::super::send::send;
use super::super::stack::stack;
use super::expected::Expectations;

/// The headers of each request of the client.
const CLIENT: [(&str, &str); 2] = [("authorization", "Bearer t"), ("user-agent", "karmada")];
const DOCUMENT: &str = "/version?timeout=32s";
const TEXT: &str = r#"{"gitVersion": "v1.36.0"}"#;

/// What the agent has received.
type Seen = Arc<Mutex<Vec<String>>>;

/// Stores the document, as its first response does.
async fn store(services: &Arc<Services>) {
    let mut encoder = Encoder::new(&Histories::unlimited());
    encoder.push(Bytes::from_static(TEXT.as_bytes()));
    let encoded: Bytes = std::iter::from_fn(|| encoder.encode()).flatten().collect();
    let key = Key::of(&Request::get(DOCUMENT).header("accept", "application/json").body(()).unwrap()).unwrap();
    let arriving = services.documents.begin(&fixture::cluster(), key);
    let body = Storing::new(Full::new(encoded), &Histories::unlimited(), None, Some(arriving));
    assert_eq!(body.collect().await.unwrap().to_bytes(), TEXT);
}

/// An agent that has the document. It confirms what the proxy-server names, unless the user agent is another one.
async fn agent(services: &Services) -> Seen {
    let seen = Seen::default();
    let requests = Arc::clone(&seen);
    fixture::agent(services, move |mut head: request::Parts| {
        let named = prefetch::take(&mut head.headers);
        let target = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        requests.lock().unwrap().push(format!("{target} {}", named.len()));
        let mut response = Response::new("");
        let headers = response.headers_mut();
        headers.insert("audit-id", format!("id-{}", requests.lock().unwrap().len()).parse().unwrap());
        headers.insert("x-atoll-user", HeaderValue::from_static("karmada"));
        if !named.is_empty() {
            prefetch::write_unchanged(&[0], headers);
        }
        if target == DOCUMENT {
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            headers.insert(ENCODING, HeaderValue::from_static("held"));
        }
        response
    })
    .await;
    seen
}

/// Sends a request, and returns the head of the response and its body.
async fn get(connection: &Arc<Connection>, target: &str, headers: &[(&'static str, &str)]) -> (HeaderMap, Bytes) {
    let mut request = Request::get(target).header("accept", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(fixture::incoming().await).unwrap();
    let stack = stack(Arc::clone(connection), send(Arc::clone(&connection.services)));
    let (head, body) = stack.oneshot(request).await.unwrap_or_else(|never| match never {}).into_parts();
    assert_eq!(head.status, StatusCode::OK);
    (head.headers, body.collect().await.unwrap().to_bytes())
}

/// A connection on which the client has checked the health, and the agent has decided about the document.
async fn checked(services: &Arc<Services>) -> Arc<Connection> {
    let connection = fixture::connection_of(Arc::clone(services), Some("ke-beijing"));
    get(&connection, "/readyz", &CLIENT).await;
    connection
}

/// The same for a client that has just requested the document after another health check.
async fn decided(services: &Arc<Services>) -> Arc<Connection> {
    let connection = checked(services).await;
    get(&connection, DOCUMENT, &CLIENT).await;
    checked(services).await
}

/// Services with a stored document, an agent, and a client that has requested the document after a health check.
async fn learned() -> (Arc<Services>, Seen) {
    let services = fixture::services();
    store(&services).await;
    let seen = agent(&services).await;
    // The first response proves the token.
    checked(&services).await;
    seen.lock().unwrap().clear();
    let connection = checked(&services).await;
    assert_eq!(get(&connection, DOCUMENT, &CLIENT).await.1, TEXT);
    assert_eq!(*seen.lock().unwrap(), ["/readyz 0".to_owned(), format!("{DOCUMENT} 0")]);
    seen.lock().unwrap().clear();
    (services, seen)
}

#[tokio::test(start_paused = true)]
async fn a_document_follows_a_health_check_without_the_agent_once() {
    let (services, seen) = learned().await;
    let connection = checked(&services).await;
    assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<_>>(), ["/readyz 1"]);

    let (mut head, body) = get(&connection, DOCUMENT, &CLIENT).await;
    assert_eq!((body.as_ref(), seen.lock().unwrap().len()), (TEXT.as_bytes(), 0));
    assert_eq!(head["audit-id"], "id-1", "that of the health check");
    let (head_again, body) = get(&connection, DOCUMENT, &CLIENT).await;
    assert_eq!((body.as_ref(), seen.lock().unwrap().len()), (TEXT.as_bytes(), 1));
    head.insert("audit-id", head_again["audit-id"].clone());
    assert_eq!(head, head_again, "the client sees no other difference");
}

#[tokio::test(start_paused = true)]
async fn the_agent_decides_about_any_other_request() {
    let (services, seen) = learned().await;
    let asked = async |connection: &Arc<Connection>, headers: &[(&'static str, &str)]| {
        seen.lock().unwrap().clear();
        get(connection, DOCUMENT, headers).await;
        seen.lock().unwrap().len()
    };

    decided(&services).await;
    let other = fixture::connection_of(Arc::clone(&services), Some("ke-beijing"));
    assert_eq!(asked(&other, &CLIENT).await, 1, "another connection");

    let impersonating = [CLIENT[0], CLIENT[1], ("impersonate-user", "jane")];
    for headers in [&[("authorization", "Bearer u"), CLIENT[1]][..], &CLIENT[..1], &impersonating, &[]] {
        let connection = decided(&services).await;
        assert_eq!(asked(&connection, headers).await, 1, "{headers:?}");
    }

    let connection = decided(&services).await;
    get(&connection, "/api/v1/namespaces", &CLIENT).await;
    assert_eq!(asked(&connection, &CLIENT).await, 1, "after another request");

    let connection = decided(&services).await;
    let stack_of = || stack(Arc::clone(&connection), send(Arc::clone(&services)));
    let post = Request::post("/api/v1/namespaces").header("content-length", "2").header(CLIENT[0].0, CLIENT[0].1);
    let posted = stack_of().oneshot(post.body(fixture::incoming().await).unwrap()).await;
    drop(posted);
    assert_eq!(asked(&connection, &CLIENT).await, 1, "after a write");

    let connection = decided(&services).await;
    advance(LIFETIME).await;
    assert_eq!(asked(&connection, &CLIENT).await, 1, "too late");

    let connection = decided(&services).await;
    advance(LIFETIME / 2).await;
    assert_eq!(asked(&connection, &CLIENT).await, 0, "in time");
}

#[tokio::test(start_paused = true)]
async fn the_documents_of_one_client_are_not_named_for_another() {
    let (services, seen) = learned().await;
    let connection = fixture::connection_of(Arc::clone(&services), Some("ke-beijing"));
    get(&connection, "/readyz", &[("authorization", "Bearer u"), CLIENT[1]]).await;
    assert_eq!(*seen.lock().unwrap(), ["/readyz 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_follow_is_not_expected_for_long() {
    let (services, seen) = learned().await;
    for named in [1, 1, 1, 0] {
        checked(&services).await;
        assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<_>>(), [format!("/readyz {named}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_stored_documents_are_sent() {
    let (services, seen) = learned().await;
    let connection = checked(&services).await;
    let key = Key::of(&Request::get(DOCUMENT).header("accept", "application/json").body(()).unwrap()).unwrap();
    let mut encoder = Encoder::new(&Histories::unlimited());
    encoder.push(Bytes::from_static(b"another one"));
    let encoded: Bytes = std::iter::from_fn(|| encoder.encode()).flatten().collect();
    let arriving = services.documents.begin(&fixture::cluster(), key);
    let body = Storing::new(Full::new(encoded), &Histories::unlimited(), None, Some(arriving));
    body.collect().await.unwrap();
    seen.lock().unwrap().clear();
    get(&connection, DOCUMENT, &CLIENT).await;
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn what_is_known_is_limited() {
    let expectations = Expectations::default();
    let cluster = fixture::cluster();
    let client =
        |name: &str| expectations.client(&HeaderMap::from_iter([(http::header::USER_AGENT, name.parse().unwrap())]));
    let key = |target: &str| Key::of(&Request::get(target).body(()).unwrap()).unwrap();
    let learn = |name: &str, target: &str, head: &HeaderMap| {
        expectations.learn(&cluster.name, client(name), (key(target), head), |_| true);
    };
    for target in ["/api?1", "/api?2", "/api?3", "/api?4", "/api?5"] {
        learn("a", target, &HeaderMap::new());
    }
    let known =
        |name: &str| expectations.of(&cluster.name, client(name)).into_iter().map(|one| one.key).collect::<Vec<_>>();
    assert_eq!(known("a"), ["/api?2", "/api?3", "/api?4", "/api?5"].map(key));
    learn("long", "/api", &HeaderMap::from_iter([(http::header::ETAG, "e".repeat(2000).parse().unwrap())]));
    assert_eq!(known("long"), []);
    for name in ["b", "c", "d", "e"] {
        learn(name, "/api", &HeaderMap::new());
    }
    assert_eq!((known("a").len(), known("b").len(), known("e").len()), (0, 1, 1));
    // Clusters that are removed have no entry.
    expectations.learn(&"other".parse().unwrap(), client("a"), (key("/api"), &HeaderMap::new()), |_| false);
    assert_eq!(known("e"), []);
}
