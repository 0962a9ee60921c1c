mod shared_frames;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer;
use kube_wire::watch::{ProtobufFrames, error_event};
use ops::drain::Tasks;
use ops::workers::Workers;
use proptest::prelude::*;
use rewrite::schema::program_for;
use rewrite::view::{Beginning, ProtoWatchStream};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, sleep, timeout};
use tunnel::FairBudget;

use super::body::{Stream, TransformError};
use super::*;
use crate::seal::Seal;
use caller::testing::ke;
use host_client::HostBodyError;
use host_client::api::Change;
use host_client::api::Following;
use virtual_cluster::clusters::{Memory, VirtualCluster, VirtualClusters};
use virtual_cluster::config;
use virtual_cluster::namespaces::Namespaces;
use virtual_cluster::namespaces::annotations::Reserved;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A response of the host that a test writes.
struct Written(mpsc::UnboundedReceiver<Bytes>);

/// The host's namespaces, which do not change after the initial list.
struct Listed(VecDeque<Change>);

/// A watch of pods in virtual cluster `ke`, which has the namespace `edge`.
struct Watched {
    host: mpsc::UnboundedSender<Bytes>,
    stream: Stream<Written>,
    namespaces: Arc<Namespaces>,
}

impl Following for Listed {
    async fn next(&mut self) -> Change {
        match self.0.pop_front() {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

impl Body for Written {
    type Data = Bytes;
    type Error = HostBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HostBodyError>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

impl Body for Stream<Written> {
    type Data = Bytes;
    type Error = TransformError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransformError>>> {
        self.get_mut().poll_frame(cx)
    }
}

fn namespace(host: &str, cluster: &str, name: &str, version: &str) -> Value {
    let labels = json!({"atoll.dev/virtual-cluster": cluster, "atoll.dev/namespace": name});
    json!({"metadata": {"name": host, "uid": host, "resourceVersion": version, "labels": labels}})
}

fn event(namespace: &str, version: &str) -> Bytes {
    let metadata = json!({"name": "a", "namespace": namespace, "resourceVersion": version});
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    Bytes::from(json!({"type": "ADDED", "object": object}).to_string() + "\n")
}

/// The virtual cluster `ke`.
fn cluster(namespaces: &Arc<Namespaces>) -> Arc<VirtualCluster> {
    named_cluster("ke", namespaces)
}

/// A virtual cluster of this name.
fn named_cluster(name: &str, namespaces: &Arc<Namespaces>) -> Arc<VirtualCluster> {
    let config = config::VirtualCluster {
        name: name.parse().unwrap(),
        node_selector: BTreeMap::from([("location".into(), "beijing".into())]),
        node_expressions: Vec::new(),
        node_group: None,
        tolerations: Vec::new(),
        pod_security: config::PodSecurity::default(),
        host_tokens: None,
        external_ips: Vec::new(),
        shares: config::Shares::default(),
        karmada: None,
    };
    let clusters = VirtualClusters::new([&config], namespaces, Reserved::default()).unwrap();
    clusters.get(&config.name).unwrap()
}

/// The namespace `edge` of the virtual clusters `ke` and `hz`.
async fn listed_namespaces() -> Arc<Namespaces> {
    let namespaces = Arc::new(Namespaces::new(["ke".parse().unwrap()]));
    let known = [namespace("edge-ke", "ke", "edge", "1"), namespace("edge-hz", "hz", "edge", "1")];
    let listed = known.into_iter().map(Change::Applied).chain([Change::Synced]).collect();
    // The future never ends.
    let _ = timeout(Duration::ZERO, namespaces.follow(Listed(listed))).await;
    assert!(namespaces.is_synced());
    namespaces
}

impl Watched {
    async fn new(bookmarks: Option<Beginning>) -> Self {
        Self::limited(bookmarks, Encoding::Json).await.0
    }

    /// Also returns the limits of the virtual cluster.
    async fn limited(bookmarks: Option<Beginning>, encoding: Encoding) -> (Self, Arc<LargeObjectLimits>) {
        let namespaces = listed_namespaces().await;
        let cluster = cluster(&namespaces);
        let (view, program) = (View::new(cluster.mapping()), program_for("", "v1", "pods"));
        let events = match encoding {
            Encoding::Protobuf => Events::Protobuf(ProtoWatchStream::new(view, &program, Filter::ByNamespace).unwrap()),
            _ => Events::Json(WatchStream::new(view, program, Filter::ByNamespace)),
        };
        let (host, written) = mpsc::unbounded_channel();
        let large_objects = Arc::clone(&cluster.lasting.large_objects);
        let engine = Engine::watch(events, Arrivals::new(cluster, None), bookmarks, None);
        (Self { host, stream: Stream::new(Written(written), engine), namespaces }, large_objects)
    }

    /// The next event within a time, in seconds; `null` if there is none.
    async fn next(&mut self, within: u64) -> Value {
        let Ok(frame) = timeout(Duration::from_secs(within), self.stream.frame()).await else { return Value::Null };
        serde_json::from_slice(&frame.unwrap().unwrap().into_data().unwrap()).unwrap()
    }
}

fn bookmark(version: &str) -> Value {
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}});
    json!({"type": "BOOKMARK", "object": object})
}

#[tokio::test(start_paused = true)]
async fn a_client_without_events_gets_the_version() {
    let mut watched = Watched::new(Some(Beginning::Changes)).await;
    let begun = Instant::now();
    for version in ["5", "9"] {
        watched.host.send(event("edge-hz", version)).unwrap();
        assert_eq!(watched.next(16).await, bookmark(version));
    }
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
    // There is a bookmark even without a new version, so that the client knows that the watch is alive.
    assert_eq!(watched.next(16).await, bookmark("9"));
}

#[tokio::test(start_paused = true)]
async fn the_hosts_own_bookmarks_count() {
    let mut watched = Watched::new(Some(Beginning::Changes)).await;
    watched.host.send(event("edge-hz", "5")).unwrap();
    assert_eq!(watched.next(10).await, Value::Null);
    let own = bookmark("7");
    watched.host.send(Bytes::from(own.to_string() + "\n")).unwrap();
    assert_eq!(watched.next(1).await, own);
    assert_eq!(watched.next(14).await, Value::Null);
    assert_eq!(watched.next(2).await, bookmark("7"));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_does_not_include_held_events() {
    let mut watched = Watched::new(Some(Beginning::Changes)).await;
    watched.host.send(event("edge-hz", "5")).unwrap();
    assert_eq!(watched.next(14).await, Value::Null);
    assert!(timeout(Duration::from_millis(800), watched.stream.frame()).await.is_err());
    // The namespace of this event is not known yet when a bookmark is due.
    watched.host.send(event("new-ke", "6")).unwrap();
    assert_eq!(watched.next(1).await, bookmark("5"));
    watched.namespaces.learn(&namespace("new-ke", "ke", "new", "2")).unwrap();
    let shown = watched.next(1).await;
    assert_eq!(shown["object"]["metadata"]["namespace"], "new");
    assert_eq!(watched.next(16).await, bookmark("6"));
}

#[tokio::test(start_paused = true)]
async fn no_bookmark_is_sent_within_the_initial_state_or_without_a_request() {
    for bookmarks in [None, Some(Beginning::State), Some(Beginning::MarkedState)] {
        let mut watched = Watched::new(bookmarks).await;
        watched.host.send(event("edge-hz", "5")).unwrap();
        assert_eq!(watched.next(60).await, Value::Null, "{bookmarks:?}");
    }
}

/// An event of a pod in this namespace, or a `bookmark`, or an `error`.
fn written(encoding: Encoding, namespace: &str) -> Bytes {
    let expired = Status::expired("too old resource version");
    let (kind, field, text) = match namespace {
        "bookmark" => ("BOOKMARK", 6, "9"),
        "error" => ("ERROR", 0, ""),
        _ => ("ADDED", 3, namespace),
    };
    if encoding == Encoding::Json {
        if namespace == "error" {
            return error_event(&expired).into();
        }
        let key = if field == 3 { "namespace" } else { "resourceVersion" };
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {key: text}});
        return Bytes::from(json!({"type": kind, "object": object}).to_string() + "\n");
    }
    let message = |fields: &[(u32, &[u8])]| {
        let mut message = Writer::new();
        for (number, inside) in fields {
            message.bytes(*number, inside);
        }
        message.into_bytes()
    };
    let object = if namespace == "error" {
        expired.to_protobuf()
    } else {
        // `ObjectMeta` in `Pod` in its envelope.
        let pod = message(&[(1, &message(&[(field, text.as_bytes())]))]);
        Envelope { api_version: "v1", kind: "Pod", raw: &pod, ..Envelope::default() }.encode()
    };
    let event = message(&[(1, kind.as_bytes()), (2, &message(&[(1, &object)]))]);
    ProtobufFrames::encode(&event).unwrap().into()
}

/// What the client gets of these events, of which the first `end` bytes arrive. It gets whole events, but an event in JSON is
/// whole without its line feed.
fn expected(encoding: Encoding, namespaces: &[&str], end: usize) -> Vec<u8> {
    let (mut expected, mut begin) = (Vec::new(), 0);
    for name in namespaces {
        let length = written(encoding, name).len();
        let arrived = end.saturating_sub(begin).min(length);
        begin += length;
        let is_whole = arrived == length || (encoding == Encoding::Json && arrived == length - 1);
        if is_whole && !["edge-hz", "gone-ke"].contains(name) {
            let shown = written(encoding, name.trim_end_matches("-ke"));
            expected.extend_from_slice(&shown[..shown.len() - (length - arrived)]);
        }
    }
    expected
}

/// What the client of a watch gets if the host sends these chunks at once, and the namespace `new-ke` is known a moment
/// later; and how long that takes.
async fn read_while_one_arrives(encoding: Encoding, chunks: impl Iterator<Item = &[u8]>) -> (Vec<u8>, Duration) {
    let (Watched { host, stream, namespaces }, _) = Watched::limited(Some(Beginning::Changes), encoding).await;
    for chunk in chunks {
        host.send(Bytes::copy_from_slice(chunk)).unwrap();
    }
    drop(host);
    let begun = Instant::now();
    let learn = async {
        sleep(Duration::from_millis(100)).await;
        namespaces.learn(&namespace("new-ke", "ke", "new", "2")).unwrap();
    };
    let (shown, ()) = tokio::join!(stream.collect(), learn);
    (shown.unwrap().to_bytes().to_vec(), begun.elapsed())
}

proptest! {
    #[test]
    fn a_watch_is_the_same_in_any_chunks(
        namespaces in proptest::collection::vec(
            proptest::sample::select(&["edge-ke", "edge-hz", "new-ke", "gone-ke", "bookmark", "error"]), 0..8,
        ),
        size in 1..300_usize,
        lost in prop_oneof![Just(0), 0..300_usize],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let mut all: Vec<u8> = namespaces.iter().flat_map(|name| written(encoding, name)).collect();
            all.truncate(all.len().saturating_sub(lost));
            let expected = expected(encoding, &namespaces, all.len());
            for size in [size, usize::MAX] {
                let (shown, time) = runtime.block_on(read_while_one_arrives(encoding, all.chunks(size)));
                prop_assert_eq!(&shown, &expected);
                // The client waits only once for a namespace that does not exist.
                prop_assert!(time <= Duration::from_millis(650), "{:?}", time);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_follows_an_event_without_a_name_waits_for_it() {
    let mut watched = Watched::new(None).await;
    let text = ["edge-ke", "a-ke", "b-ke", "c-ke", "new-ke", "edge-ke"].map(|name| written(Encoding::Json, name));
    watched.host.send(text.concat().into()).unwrap();
    let begun = Instant::now();
    let next = watched.next(1).await;
    assert_eq!((next["object"]["metadata"]["namespace"].as_str(), begun.elapsed()), (Some("edge"), Duration::ZERO));
    watched.namespaces.learn(&namespace("new-ke", "ke", "new", "2")).unwrap();
    // All events of a chunk wait at the same time.
    let shown = timeout(Duration::from_millis(510), watched.stream.frame()).await.unwrap().unwrap().unwrap();
    assert_eq!(shown.into_data().unwrap(), ["new", "edge"].map(|name| written(Encoding::Json, name)).concat());
    assert!(begun.elapsed() >= Duration::from_millis(500));
}

/// A namespace of another cluster changes nothing once it is known.
#[tokio::test(start_paused = true)]
async fn a_watch_waits_only_for_namespaces_of_its_cluster() {
    let mut watched = Watched::new(None).await;
    for (cluster, expected, wait) in [("hz", "edge", 0), ("ke", "new", 3)] {
        let host = format!("new-{cluster}");
        watched.host.send(event(&host, "5")).unwrap();
        watched.host.send(event("edge-ke", "6")).unwrap();
        let (begun, namespaces) = (Instant::now(), Arc::clone(&watched.namespaces));
        let learn = async {
            sleep(Duration::from_millis(3)).await;
            namespaces.learn(&namespace(&host, cluster, "new", "2")).unwrap();
        };
        let shown = async { (watched.next(1).await, begun.elapsed().as_millis()) };
        let ((shown, time), ()) = tokio::join!(shown, learn);
        assert_eq!((shown["object"]["metadata"]["namespace"].as_str(), time), (Some(expected), wait));
    }
}

/// The agent's own watch of namespaces was late. The client lists again, and then gets the event.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_an_event_that_it_has_left_out_becomes_visible() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let (mut watched, _) = Watched::limited(None, encoding).await;
        for namespace in ["new-ke", "edge-ke"] {
            watched.host.send(written(encoding, namespace)).unwrap();
        }
        let shown = timeout(Duration::from_secs(1), watched.stream.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(shown.into_data().unwrap(), written(encoding, "edge"));
        watched.namespaces.learn(&namespace("other-ke", "ke", "other", "2")).unwrap();
        assert!(timeout(Duration::from_secs(60), watched.stream.frame()).await.is_err(), "nothing was left out there");
        watched.namespaces.learn(&namespace("new-ke", "ke", "new", "3")).unwrap();
        let end = timeout(Duration::ZERO, watched.stream.collect()).await.unwrap().unwrap().to_bytes();
        let end = String::from_utf8_lossy(&end).into_owned();
        assert!(end.contains("ERROR") && end.contains("Expired") && end.contains("list again"), "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_drops_the_response_of_the_host() {
    let mut watched = Watched::new(None).await;
    watched.host.send(written(Encoding::Json, "new-ke")).unwrap();
    assert!(timeout(Duration::from_millis(100), watched.stream.frame()).await.is_err());
    assert!(!watched.host.is_closed());
    drop(watched.stream);
    assert!(watched.host.is_closed());
}

/// A stream that the host has written in chunks, read on a worker while something else has the turn of the cluster. The worker
/// must not wait for the turn, and must not map the long object itself. Returns the whole body.
async fn read_on_a_worker(
    host: mpsc::UnboundedSender<Bytes>,
    written: &[u8],
    mut stream: Stream<Written>,
    large_objects: Arc<LargeObjectLimits>,
) -> Vec<u8> {
    for chunk in written.chunks(100_000) {
        host.send(Bytes::copy_from_slice(chunk)).unwrap();
    }
    drop(host);
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (enter, entered) = oneshot::channel();
    let turn = tokio::task::spawn_blocking(move || {
        large_objects.run(move || {
            enter.send(()).unwrap();
            released.recv()
        })
    });
    entered.await.unwrap();
    let (workers, _threads) = Workers::start(std::num::NonZeroUsize::MIN).unwrap();
    let (sender, receiver) = oneshot::channel();
    workers.at(0).spawn(&Tasks::new(), "test", async move {
        let mut body = Vec::new();
        let mut release = Some(release);
        loop {
            let polled = std::future::poll_fn(|cx| Poll::Ready(stream.poll_frame(cx))).await;
            match polled {
                Poll::Ready(Some(frame)) => body.extend_from_slice(&frame.unwrap().into_data().unwrap()),
                Poll::Ready(None) => break,
                // It waits for the turn.
                Poll::Pending => {
                    drop(release.take());
                    tokio::task::yield_now().await;
                }
            }
        }
        sender.send((body, release.is_none())).unwrap();
    });
    let (body, has_waited) = receiver.await.unwrap();
    assert!(has_waited);
    assert!(turn.await.unwrap().is_err());
    body
}

fn long(length: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "a", "namespace": "edge-ke", "annotations": {"long": "x".repeat(length)},
    }})
}

#[tokio::test]
async fn a_worker_leaves_a_long_object_of_a_list_to_another_thread() {
    let (host, written) = mpsc::unbounded_channel();
    let list = ListStream::new(View::new(ke()), program_for("", "v1", "pods"), Filter::ByNamespace);
    let large_objects = Arc::default();
    let stream = Stream::new(Written(written), Engine::List(List::new(list, Arc::clone(&large_objects))));
    let objects = [long(10), long(2 << 20), long(20)];
    let all = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": objects}).to_string();
    let shown = read_on_a_worker(host, all.as_bytes(), stream, large_objects).await;
    assert!(String::from_utf8(shown).unwrap() == all.replace("edge-ke", "edge"));
}

#[tokio::test]
async fn a_worker_leaves_a_long_event_of_a_watch_to_another_thread() {
    let (Watched { host, stream, .. }, large_objects) = Watched::limited(None, Encoding::Json).await;
    let objects = [long(10), long(2 << 20), long(20)];
    let all = objects.map(|object| json!({"type": "ADDED", "object": object}).to_string() + "\n").concat();
    let shown = read_on_a_worker(host, all.as_bytes(), stream, large_objects).await;
    assert!(String::from_utf8(shown).unwrap() == all.replace("edge-ke", "edge"));
}

#[tokio::test]
async fn a_worker_leaves_a_long_object_to_another_thread() {
    let (workers, _threads) = Workers::start(std::num::NonZeroUsize::MIN).unwrap();
    let (sender, mut done) = mpsc::unbounded_channel();
    for (length, expected) in [(10, ["mapped", "other"]), (2 << 20, ["other", "mapped"])] {
        let body = long(length).to_string();
        let shown = body.replace("edge-ke", "edge");
        let host = Response::builder().header(header::CONTENT_TYPE, JSON);
        let host = host.body(Upstream::Whole(body.into())).unwrap();
        let (program, filter) = (program_for("", "v1", "pods"), Filter::ByNamespace);
        let object = ResponseTransform::Object { program, filter, only: None };
        let budget = FairBudget::new(16 << 20, 8 << 20);
        let memory =
            Memory { bodies: budget.share(), lists: budget.share(), watches: budget.share(), heads: budget.share() };
        let (one, other) = (sender.clone(), sender.clone());
        let both = async move {
            let large_objects = LargeObjectLimits::default();
            let (view, collector) = (View::new(ke()), Collector::new(&memory, &large_objects, true));
            let mapped = async {
                let response = transform_response(&view, object, || unreachable!(), host, collector).await.unwrap();
                assert!(response.into_body().collect().await.unwrap().to_bytes() == shown);
                one.send("mapped").unwrap();
            };
            // In this order, unless the first one waits.
            tokio::join!(biased; mapped, async { other.send("other").unwrap() });
        };
        workers.at(0).spawn(&Tasks::new(), "test", both);
        assert_eq!([done.recv().await.unwrap(), done.recv().await.unwrap()], expected);
    }
}

#[tokio::test]
async fn the_way_to_the_rest_of_an_expired_list_is_sealed() {
    let budget = FairBudget::new(1 << 20, 1 << 20);
    let memory =
        Memory { bodies: budget.share(), lists: budget.share(), watches: budget.share(), heads: budget.share() };
    let large_objects = LargeObjectLimits::default();
    let seal = Arc::new(Seal::new().unwrap());
    let plain = r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"edge-ke/a\u0000"}"#;
    let mut expired = Status::expired("the continue parameter is too old");
    expired.metadata.continue_token = plain.to_owned();
    for (encoding, media_type) in [(Encoding::Json, JSON), (Encoding::Protobuf, PROTOBUF)] {
        let text = match encoding {
            Encoding::Json => expired.to_json(),
            _ => expired.to_protobuf(),
        };
        let host = Response::builder().status(StatusCode::GONE).header(header::CONTENT_TYPE, media_type);
        let host = host.body(Upstream::Whole(text.into())).unwrap();
        let (program, filter) = (program_for("", "v1", "pods"), Filter::ByNamespace);
        let list = ResponseTransform::List {
            program,
            filter,
            seal: Arc::clone(&seal),
            token: "pods".into(),
            counted: false,
            namespaces: ListNamespaces::without_waiting(cluster(&Arc::new(Namespaces::new(["ke".parse().unwrap()])))),
        };
        let view = View::new(ke());
        let shown =
            transform_response(&view, list, || unreachable!(), host, Collector::new(&memory, &large_objects, true))
                .await
                .unwrap();
        let shown = shown.into_body().collect().await.unwrap().to_bytes();
        let mut shown = match encoding {
            Encoding::Json => Status::from_json(&shown),
            _ => Status::from_protobuf(&shown),
        }
        .unwrap();
        let token = std::mem::replace(&mut shown.metadata.continue_token, plain.to_owned());
        assert_eq!(shown, expired);
        assert_eq!(seal.open(&token, "pods").as_deref(), Ok(plain));
    }
}
