//! A feed between a host in memory and watches of many virtual clusters.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

mod lists;
mod moves;
mod opening;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use feeds::{
    Begun, Bypass, Collection, Feeds, Membership, Move, Moves, Permission, Placed, Placement, Rights, WatchBody,
    WatchQuery,
};
use h2::SendStream;
use host_client::api::Api;
use host_client::testing::{FakeServer, ReceivedRequest, World};
use http::{HeaderMap, Method};
use http_body::Body as _;
use hub::{ClusterId, Place, ResourceVersion};
use ops::drain::Tasks;
use rewrite::HostNamespace;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::timeout;

const CLUSTERS: u32 = 50;
const PATH: &str = "/api/v1/configmaps";

/// A namespace that does not exist until it has an owner.
const UNKNOWN: &str = "unknown";

/// Lists of this namespace show how new the host is.
const NOBODYS: &str = "taken.by.somebody.else";

/// The namespace `n7` belongs to the cluster 7, unless it has another owner.
#[derive(Clone, Debug)]
struct Owners {
    others: Arc<Mutex<HashMap<String, Place>>>,
    moves: broadcast::Sender<Move>,
}

struct OwnerMoves(broadcast::Receiver<Move>);

impl Owners {
    fn new() -> Self {
        Self { others: Arc::default(), moves: broadcast::Sender::new(8) }
    }

    fn set(&self, namespace: &str, place: Place) {
        self.others.lock().unwrap().insert(namespace.to_owned(), place);
        self.moves.send(Move::Namespace(HostNamespace::new(namespace).unwrap())).unwrap();
    }
}

impl Placement for Owners {
    type Moves = OwnerMoves;

    async fn place(&self, membership: Membership, namespace: &str, _: ResourceVersion) -> Placed {
        Placed::Now(self.place_of(membership, namespace).unwrap_or(Place::Nobody))
    }

    fn place_of(&self, _: Membership, namespace: &str) -> Option<Place> {
        if namespace == UNKNOWN && !self.others.lock().unwrap().contains_key(UNKNOWN) {
            return None;
        }
        let number = namespace.strip_prefix('n').and_then(|number| number.parse().ok());
        let own = number.map_or(Place::Nobody, |number| Place::One(ClusterId(number)));
        Some(self.others.lock().unwrap().get(namespace).cloned().unwrap_or(own))
    }

    fn namespaces_of(&self, membership: Membership, cluster: ClusterId) -> Vec<HostNamespace> {
        let mut names: Vec<String> = self.others.lock().unwrap().keys().cloned().collect();
        names.push(format!("n{}", cluster.0));
        names.sort();
        names.dedup();
        names.retain(|name| self.place_of(membership, name) == Some(Place::One(cluster)));
        names.iter().map(|name| HostNamespace::new(name).unwrap()).collect()
    }

    fn moves(&self) -> OwnerMoves {
        OwnerMoves(self.moves.subscribe())
    }
}

impl Moves for OwnerMoves {
    async fn next(&mut self) -> Move {
        match self.0.recv().await {
            Ok(change) => change,
            Err(_) => std::future::pending().await,
        }
    }
}

struct Site {
    server: FakeServer,
    feeds: Arc<Feeds<Owners>>,
    owners: Owners,
    _tasks: Tasks,
}

impl Site {
    fn new() -> Self {
        Self::with_memory(96 << 20)
    }

    fn with_memory(memory: usize) -> Self {
        let (world, tasks) = (World::default(), Tasks::new());
        let server = world.server("a", 100);
        let api = Api::new(world.host(&[&server], &tasks));
        let owners = Owners::new();
        let feeds = Arc::new(Feeds::new(&api, owners.clone(), memory, &tasks));
        Self { server, feeds, owners, _tasks: tasks }
    }

    /// A host with these objects at version 10, a feed that has read them, and the stream of the feed's watch.
    async fn with(objects: &[Value]) -> (Self, SendStream<Bytes>) {
        Self::new().filled(objects).await
    }

    /// A feed that has read these objects of the host.
    async fn filled(self, objects: &[Value]) -> (Self, SendStream<Bytes>) {
        let mut site = self;
        for cluster in [998, 999] {
            let feeds = Arc::clone(&site.feeds);
            tokio::spawn(
                async move { begin(&feeds, &collection(), query(cluster, "resourceVersion=0"), always()).await },
            );
        }
        site.list(10, objects).await;
        let stream = site.watched_from(10).await;
        assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(10)).await);
        (site, stream)
    }

    async fn list(&mut self, version: u64, objects: &[Value]) {
        let received = self.server.next_request().await;
        assert_eq!(received.path(), format!("{PATH}?limit=500"));
        let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": objects});
        received.answer_with(200, list.to_string());
    }

    async fn watched_from(&mut self, version: u64) -> SendStream<Bytes> {
        let received = self.server.next_request().await;
        let from = format!("/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={version}&");
        assert!(received.path().starts_with(&from), "{}", received.path());
        received.begin()
    }

    /// Answers reads of the newest version with 20, and lists of namespaces at the version 30, until no request has come for
    /// three seconds.
    async fn answer_lists(&mut self, objects_in: impl Fn(&str) -> Vec<Value>) {
        while let Ok(received) = timeout(Duration::from_secs(3), self.server.next_request()).await {
            let namespace = received.path().split('/').nth(4).unwrap_or_default().to_owned();
            if namespace == NOBODYS {
                received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
                continue;
            }
            let list = json!({"metadata": {"resourceVersion": "30"}, "items": objects_in(&namespace)});
            received.answer_with(200, list.to_string());
        }
    }

    async fn watch(&self, cluster: u32, text: &str) -> WatchBody {
        match begin(&self.feeds, &collection(), query(cluster, text), always()).await {
            Ok(Begun::Watch(body)) => body,
            refused => panic!("{refused:?}"),
        }
    }

    /// Whether a watch gets 410.
    async fn is_expired(&self, cluster: u32, version: u64) -> bool {
        let query = query(cluster, &format!("resourceVersion={version}"));
        matches!(begin(&self.feeds, &collection(), query, always()).await, Ok(Begun::Expired(_)))
    }
}

/// What the agent does with a watch.
async fn begin(
    feeds: &Feeds<Owners>,
    collection: &Collection,
    query: WatchQuery,
    permission: Permission,
) -> Result<Begun, Bypass> {
    let feed = feeds.ready(collection, &query).await?;
    feeds.begin(&feed, query, permission).await
}

/// A permission that is never revoked.
fn always() -> Permission {
    permission(|| true)
}

/// A permission for as long as `is_allowed` says. No changes of rights are watched.
fn permission(is_allowed: impl Fn() -> bool + Send + Sync + 'static) -> Permission {
    let (rights, namespace) = (Rights::new(|_| {}), HostNamespace::new("n1").unwrap());
    Permission::new(&rights, &"ke".parse().unwrap(), &namespace, &Tasks::new(), move |_| {
        let is_allowed = is_allowed();
        Box::pin(async move { Some(is_allowed) })
    })
}

fn collection() -> Collection {
    let (api_version, kind) = ("v1".into(), "ConfigMap".into());
    Collection { path: PATH.into(), api_version, kind, is_built_in: true, membership: Membership::Namespaced }
}

fn query(cluster: u32, text: &str) -> WatchQuery {
    let uri = format!("{PATH}?watch=true&allowWatchBookmarks=true&{text}").parse().unwrap();
    WatchQuery::read(&Method::GET, &uri, &HeaderMap::new(), ClusterId(cluster)).unwrap()
}

fn object(namespace: &str, name: &str, version: u64, app: &str) -> Value {
    let labels = json!({"app": app});
    json!({"metadata": {"name": name, "namespace": namespace, "resourceVersion": version.to_string(), "labels": labels}})
}

fn with_kind(mut object: Value) -> Value {
    object["kind"] = "ConfigMap".into();
    object["apiVersion"] = "v1".into();
    object
}

fn send(stream: &mut SendStream<Bytes>, event: &str, object: Value) {
    let frame = json!({"type": event, "object": with_kind(object)});
    stream.send_data(format!("{frame}\n").into(), false).unwrap();
}

/// The next event: its type, and its object.
async fn next(body: &mut WatchBody) -> Option<(String, Value)> {
    let mut text = Vec::new();
    while !text.ends_with(b"}\n") {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let mut event: Value = serde_json::from_slice(&text).unwrap();
    Some((event["type"].as_str().unwrap().to_owned(), event["object"].take()))
}

fn is_silent(body: &mut WatchBody) -> bool {
    matches!(Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

const INITIAL: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion";

#[tokio::test(start_paused = true)]
async fn one_list_and_one_watch_serve_all_clusters() {
    let (mut site, mut stream) = Site::with(&[object("n7", "a", 3, "x"), object("kube-system", "b", 4, "x")]).await;
    let mut bodies = Vec::new();
    for number in 0..CLUSTERS {
        bodies.push(site.watch(number, &format!("{INITIAL}=0")).await);
    }
    for (number, body) in bodies.iter_mut().enumerate() {
        if number == 7 {
            let added = ("ADDED".to_owned(), with_kind(object("n7", "a", 3, "x")));
            assert_eq!(next(body).await.unwrap(), added, "items of a list have no kind, events have one");
        }
        let (event, mark) = next(body).await.unwrap();
        assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("10")));
        assert_eq!(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    }
    send(&mut stream, "ADDED", object("n9", "c", 11, "x"));
    send(&mut stream, "MODIFIED", object("kube-system", "b", 12, "x"));
    assert_eq!(next(&mut bodies[9]).await.unwrap(), ("ADDED".to_owned(), with_kind(object("n9", "c", 11, "x"))));
    for body in &mut bodies {
        assert!(is_silent(body));
    }
    drop(bodies);
    // The watch of the host ends. The next one continues, and clients notice nothing.
    let mut body = site.watch(9, "resourceVersion=11").await;
    stream.send_data(Bytes::new(), true).unwrap();
    let mut stream = site.watched_from(12).await;
    send(&mut stream, "DELETED", object("n9", "c", 13, "x"));
    assert_eq!(next(&mut body).await.unwrap(), ("DELETED".to_owned(), with_kind(object("n9", "c", 13, "x"))));
}

#[tokio::test(start_paused = true)]
async fn what_a_selector_no_longer_matches_is_deleted() {
    let (site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10&labelSelector=app%3Dx").await;
    send(&mut stream, "MODIFIED", object("n1", "a", 11, "y"));
    // The former object, with the version of the event.
    assert_eq!(next(&mut body).await.unwrap(), ("DELETED".to_owned(), with_kind(object("n1", "a", 11, "x"))));
    send(&mut stream, "MODIFIED", object("n1", "a", 12, "x"));
    assert_eq!(next(&mut body).await.unwrap(), ("ADDED".to_owned(), with_kind(object("n1", "a", 12, "x"))));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_the_right_to_it() {
    let (site, mut stream) = Site::with(&[]).await;
    let is_allowed = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_allowed);
    let permission = permission(move || seen.load(Ordering::Relaxed));
    let begun = begin(&site.feeds, &collection(), query(1, "resourceVersion=10"), permission).await;
    let Ok(Begun::Watch(mut body)) = begun else { panic!("{begun:?}") };
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&mut stream, "ADDED", object("n1", "a", 11, "x"));
    assert_eq!(next(&mut body).await.unwrap().0, "ADDED");
    is_allowed.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&mut stream, "ADDED", object("n1", "b", 12, "x"));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_410_of_the_host_ends_the_watches() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", object("n2", "a", 11, "x"));
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
    stream.send_data(format!("{}\n", json!({"type": "ERROR", "object": status})).into(), false).unwrap();
    let (event, status) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert_eq!(next(&mut body).await, None);
    site.list(50, &[object("n1", "b", 40, "x")]).await;
    let _stream = site.watched_from(50).await;
    // The host has no events after 11, and neither has the feed. It may have those after 12.
    assert!(site.is_expired(1, 11).await);
    let refused = begin(&site.feeds, &collection(), query(1, "resourceVersion=12"), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::BeforeWindow);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_host_sends_the_watches_there() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    stream.send_data(Bytes::new(), true).unwrap();
    let refuse = |received: ReceivedRequest| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403});
        received.answer_with(403, status.to_string());
    };
    refuse(site.server.next_request().await);
    assert_eq!(next(&mut body).await, None, "the client resumes at the host");
    let refused = begin(&site.feeds, &collection(), query(1, "resourceVersion=10"), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::Closed);
    refuse(site.server.next_request().await);
    site.list(20, &[object("n1", "b", 15, "x")]).await;
    let _stream = site.watched_from(20).await;
    let mut body = site.watch(1, &format!("{INITIAL}=0")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("n1", "b", 15, "x")));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_bookmarks() {
    let (site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "30"}}));
    let (event, mark) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("30")));
    assert!(is_silent(&mut body));
}

#[tokio::test(start_paused = true)]
async fn the_newest_state_needs_a_bookmark_of_the_host() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let feeds = Arc::clone(&site.feeds);
    let text = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let begun = tokio::spawn(async move { begin(&feeds, &collection(), query(1, text), always()).await });
    let received = site.server.next_request().await;
    assert_eq!(received.path(), format!("/api/v1/namespaces/{NOBODYS}/configmaps?limit=1"));
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[{}]}"#);
    // An event between the two.
    send(&mut stream, "ADDED", object("n1", "b", 11, "x"));
    let received = site.server.next_request().await;
    assert!(received.path().contains("&timeoutSeconds=3"), "{}", received.path());
    let mut brief = received.begin();
    send(&mut brief, "ADDED", object("n1", "b", 11, "x"));
    send(&mut brief, "MODIFIED", object("n1", "b", 15, "x"));
    send(&mut brief, "BOOKMARK", json!({"metadata": {"resourceVersion": "21"}}));
    let Begun::Watch(mut body) = begun.await.unwrap().unwrap() else { panic!("no watch") };
    for (name, version) in [("a", 3), ("b", 15)] {
        let added = ("ADDED".to_owned(), with_kind(object("n1", name, version, "x")));
        assert_eq!(next(&mut body).await.unwrap(), added);
    }
    let (event, mark) = next(&mut body).await.unwrap();
    assert_eq!((event.as_str(), &mark["metadata"]["resourceVersion"]), ("BOOKMARK", &json!("21")));
    // The next watch of the host begins at once, and is not brief.
    brief.send_data(Bytes::new(), true).unwrap();
    let received = site.server.next_request().await;
    assert!(received.path().contains("resourceVersion=21&") && !received.path().contains("timeoutSeconds=3&"));
}

#[tokio::test(start_paused = true)]
async fn a_host_without_such_a_bookmark_serves_the_newest_state_itself() {
    let (mut site, _stream) = Site::with(&[]).await;
    let feeds = Arc::clone(&site.feeds);
    let begun = tokio::spawn(async move { begin(&feeds, &collection(), query(1, ""), always()).await });
    let received = site.server.next_request().await;
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
    assert_eq!(begun.await.unwrap().unwrap_err(), Bypass::Timeout);
}

/// Nodes, for example: each request selects those of its virtual cluster.
#[tokio::test(start_paused = true)]
async fn everybody_gets_the_selected_objects_of_a_cluster_scoped_resource() {
    let node = |name: &str, version: u64, app: &str| {
        let metadata = json!({"name": name, "resourceVersion": version.to_string(), "labels": {"app": app}});
        with_kind(json!({"metadata": metadata}))
    };
    let mut site = Site::new();
    let nodes = Collection { membership: Membership::Everybody, ..collection() };
    let watch =
        async |site: &Site, cluster, text: &str| begin(&site.feeds, &nodes, query(cluster, text), always()).await;
    assert_eq!(watch(&site, 1, "resourceVersion=0").await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 2, "resourceVersion=0").await.unwrap_err(), Bypass::Timeout);
    site.list(10, &[node("a", 3, "x"), node("b", 4, "y")]).await;
    let mut stream = site.watched_from(10).await;
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(10)).await);
    let mut bodies = Vec::new();
    for (cluster, app) in [(1, "x"), (2, "y")] {
        let begun = watch(&site, cluster, &format!("{INITIAL}=0&labelSelector=app%3D{app}")).await;
        let Ok(Begun::Watch(body)) = begun else { panic!("{begun:?}") };
        bodies.push(body);
    }
    for (body, (name, version, app)) in bodies.iter_mut().zip([("a", 3, "x"), ("b", 4, "y")]) {
        assert_eq!(next(body).await.unwrap(), ("ADDED".to_owned(), node(name, version, app)));
        assert_eq!(next(body).await.unwrap().0, "BOOKMARK");
    }
    // The node changes its cluster.
    send(&mut stream, "MODIFIED", node("a", 11, "y"));
    assert_eq!(next(&mut bodies[0]).await.unwrap(), ("DELETED".to_owned(), node("a", 11, "x")));
    assert_eq!(next(&mut bodies[1]).await.unwrap(), ("ADDED".to_owned(), node("a", 11, "y")));
}
