use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use protocol::blocks::{Encoder, Histories};
use protocol::digest::{Digest, MAX_HELD};

use super::store::{MAX_OF_CLUSTER, MAX_TOTAL};
use super::*;
use crate::config::Cluster;

fn cluster(name: &str, agent: &str) -> Arc<Cluster> {
    let (name, agents) = (name.parse().unwrap(), vec![agent.parse().unwrap()]);
    Arc::new(Cluster {
        name,
        agents,
        mode: protocol::registration::Mode::Virtual,
        client_ca: None,
        oidc: None,
        api_server: None,
        destinations: Vec::new(),
        audit: None,
    })
}

fn key(target: &str) -> Option<Key> {
    Key::of(&Request::get(target).header("accept", "application/json").body(()).unwrap())
}

fn encoded(text: &Bytes) -> Bytes {
    let mut encoder = Encoder::new(&Histories::unlimited());
    encoder.push(text.clone());
    std::iter::from_fn(|| encoder.encode()).flatten().collect()
}

/// Stores a document of this many bytes.
fn store(documents: &Arc<Documents>, cluster: &Arc<Cluster>, target: &str, bytes: usize) {
    let arriving = documents.begin(cluster, key(target).unwrap());
    arriving.push(&Bytes::from(vec![0; bytes]));
    arriving.end(Digest::of(b""), 1);
}

fn has(documents: &Documents, cluster: &Cluster, target: &str) -> bool {
    documents.get(cluster, &key(target).unwrap()).is_some()
}

#[test]
fn only_documents_have_a_key() {
    for target in [
        "/version",
        "/api",
        "/api/v1",
        "/apis",
        "/apis?timeout=32s",
        "/apis/apps/v1",
        "/openapi/v3/apis/apps/v1?hash=A",
    ] {
        assert!(key(target).is_some(), "{target}");
    }
    for target in ["/", "/readyz", "/versions", "/api/v1/pods", "/apis/apps/v1/deployments", "/apidocs"] {
        assert!(key(target).is_none(), "{target}");
    }
    let conditional = Request::get("/apis").header("if-none-match", "\"1\"").body(()).unwrap();
    assert!(Key::of(&conditional).is_none());
}

#[tokio::test]
async fn a_body_is_stored_when_it_is_complete() {
    let (documents, cluster) = (Arc::new(Documents::default()), cluster("a", "s"));
    let (key, text) = (key("/apis").unwrap(), Bytes::from("a document ".repeat(20_000)));
    let arrive = async |text: &Bytes| {
        let arriving = documents.begin(&cluster, key.clone());
        let body = Storing::new(Full::new(encoded(text)), &Histories::unlimited(), None, Some(arriving));
        assert_eq!(body.collect().await.unwrap().to_bytes(), *text);
    };
    arrive(&text).await;
    let document = documents.get(&cluster, &key).unwrap();
    assert_eq!(*document.digest(), Digest::of(&text));
    let size = documents.lock().counts().2;
    assert!(size < text.len() / 20, "{size}");
    assert_eq!(document.into_body().collect().await.unwrap().to_bytes(), text);

    arrive(&Bytes::from(vec![b' '; MAX_HELD + 1])).await;
    assert_eq!(documents.get(&cluster, &key).unwrap().digest(), &Digest::of(&text), "the long one is not stored");
    let (stored, arriving, _) = documents.lock().counts();
    assert_eq!((stored, arriving), (1, 0));
}

/// The end of the stream arrives in a frame of its own, later.
#[tokio::test]
async fn a_body_is_stored_when_all_bytes_have_arrived() {
    let (documents, cluster) = (Arc::new(Documents::default()), cluster("a", "s"));
    let text = Bytes::from("a document ".repeat(20_000));
    let arriving = documents.begin(&cluster, key("/apis").unwrap());
    let open = Full::new(encoded(&text)).with_trailers(std::future::pending());
    let mut body = Storing::new(Box::pin(open), &Histories::unlimited(), Some(text.len() as u64), Some(arriving));
    let mut read = 0;
    while read < text.len() {
        assert!(!has(&documents, &cluster, "/apis"));
        read += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    assert!(has(&documents, &cluster, "/apis"));
}

#[tokio::test]
async fn a_body_that_is_abandoned_leaves_nothing() {
    let (documents, cluster) = (Arc::new(Documents::default()), cluster("a", "s"));
    let arriving = documents.begin(&cluster, key("/apis").unwrap());
    let text = Bytes::from("a document ".repeat(20_000));
    let mut body = Storing::new(Full::new(encoded(&text)), &Histories::unlimited(), None, Some(arriving));
    body.frame().await.unwrap().unwrap();
    assert_eq!(documents.lock().counts().1, 1);
    drop(body);
    assert_eq!(documents.lock().counts(), (0, 0, 0));
}

#[test]
fn the_least_recently_used_documents_leave() {
    let (documents, a) = (Arc::new(Documents::default()), cluster("a", "s"));
    for number in 0..MAX_OF_CLUSTER {
        store(&documents, &a, &format!("/apis?{number}"), 1);
    }
    assert!(has(&documents, &a, "/apis?0"));
    store(&documents, &a, "/api", 1);
    assert!(has(&documents, &a, "/apis?0") && !has(&documents, &a, "/apis?1"));
}

#[test]
fn the_largest_cluster_makes_space() {
    let (documents, small, large) = (Arc::new(Documents::default()), cluster("small", "s"), cluster("large", "s"));
    store(&documents, &small, "/api", 1_000);
    for number in 0..10 {
        store(&documents, &large, &format!("/apis?{number}"), MAX_TOTAL / 4);
    }
    assert!(has(&documents, &small, "/api"));
    assert!(has(&documents, &large, "/apis?9") && !has(&documents, &large, "/apis?0"));
    assert!(documents.lock().counts().2 <= MAX_TOTAL);
}

#[test]
fn readers_who_stop_hold_little() {
    let (documents, cluster) = (Arc::new(Documents::default()), cluster("a", "s"));
    let piece = Bytes::from(vec![0; 1_000_000]);
    let stalled: Vec<Arriving> = (0..1_000)
        .map(|number| {
            let arriving = documents.begin(&cluster, key(&format!("/openapi/v2?{number}")).unwrap());
            arriving.push(&piece);
            arriving
        })
        .collect();
    assert!(documents.lock().counts().2 <= MAX_TOTAL);
    assert!(!stalled[0].push(&piece), "the oldest ones are not stored any more");
    // One more response for the same key takes the place of the last one.
    let last = stalled.last().unwrap();
    let next = documents.begin(&cluster, key("/openapi/v2?999").unwrap());
    assert!(!last.push(&piece) && next.push(&piece));
}

#[tokio::test]
async fn a_client_does_not_keep_a_document() {
    let (documents, a) = (Arc::new(Documents::default()), cluster("a", "s"));
    store(&documents, &a, "/apis", 1_000);
    let body = documents.get(&a, &key("/apis").unwrap()).unwrap().into_body();
    store(&documents, &a, "/apis", 1_000);
    assert!(body.collect().await.is_err());
}

#[test]
fn other_agents_have_other_documents() {
    let documents = Arc::new(Documents::default());
    let (before, after) = (cluster("a", "s"), cluster("a", "t"));
    store(&documents, &before, "/apis", 1);
    assert!(has(&documents, &before, "/apis") && !has(&documents, &after, "/apis"));
    store(&documents, &after, "/api", 1);
    assert!(has(&documents, &after, "/api") && !has(&documents, &before, "/apis"));
    assert_eq!(documents.lock().counts().0, 1);
}
