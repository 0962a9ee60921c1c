//! Watches that get the same frames of a feed.

use std::sync::LazyLock;

use super::*;
use crate::translate::MappedFrames;

/// Settings of the cluster, which all its watches share.
static GUARD: LazyLock<Arc<rewrite::Guard>> = LazyLock::new(Arc::default);

/// A watch of pods in a virtual cluster.
struct SharedWatch {
    host: mpsc::UnboundedSender<Bytes>,
    stream: Stream<Written>,
}

impl SharedWatch {
    fn new(cluster: &Arc<VirtualCluster>, frames: Option<&Arc<MappedFrames>>, beginning: Option<Beginning>) -> Self {
        let view = View::new(cluster.mapping()).with_guard(Arc::clone(&GUARD));
        let events = Events::Json(WatchStream::new(view, program_for("", "v1", "pods"), Filter::ByNamespace));
        let (host, written) = mpsc::unbounded_channel();
        let arrivals = Arrivals::new(Arc::clone(cluster), None);
        let engine = Engine::watch(events, arrivals, beginning, frames.map(Arc::clone));
        Self { host, stream: Stream::new(Written(written), engine) }
    }

    async fn next(&mut self) -> Option<Bytes> {
        let frame = timeout(Duration::from_millis(1), self.stream.frame()).await.ok()?;
        Some(frame?.unwrap().into_data().unwrap())
    }
}

fn large(namespace: &str, length: usize) -> Bytes {
    let metadata = json!({"name": "a", "namespace": namespace, "resourceVersion": "8"});
    let text = "x".repeat(length);
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"text": text}});
    Bytes::from(json!({"type": "MODIFIED", "object": object}).to_string() + "\n")
}

#[tokio::test(start_paused = true)]
async fn watches_of_one_cluster_share_the_bytes() {
    let namespaces = listed_namespaces().await;
    let (ke, frames) = (cluster(&namespaces), Arc::default());
    let mut watches = [0; 4].map(|_| SharedWatch::new(&ke, Some(&frames), Some(Beginning::Changes)));
    let lengths = [300_000, 2 << 20, 300_000];
    let frames = lengths.map(|length| large("edge-ke", length));
    for frame in [event("edge-ke", "7")].into_iter().chain(frames).chain([event("edge-ke", "9")]) {
        let read = async |watch: &mut SharedWatch| {
            watch.host.send(frame.clone()).unwrap();
            let (mut pieces, length) = (Vec::new(), frame.len() - "-ke".len());
            while pieces.iter().map(Bytes::len).sum::<usize>() < length {
                let piece = timeout(Duration::from_secs(10), watch.stream.frame()).await.unwrap().unwrap().unwrap();
                pieces.push(piece.into_data().unwrap());
            }
            pieces
        };
        let [a, b, c, d] = watches.each_mut();
        // All of them wait for the turn of a long event at the same time.
        let turn = ke.lasting.large_objects.frames().acquire_owned().await.unwrap();
        let give_up_turn = async {
            sleep(Duration::from_secs(1)).await;
            drop(turn);
        };
        let (a, b, c, d, ()) = tokio::join!(read(a), read(b), read(c), read(d), give_up_turn);
        let shown = [a, b, c, d];
        let addresses = |pieces: &Vec<Bytes>| pieces.iter().map(|piece| piece.as_ptr().addr()).collect::<Vec<_>>();
        let addresses: Vec<_> = shown.iter().map(addresses).collect();
        assert!(addresses.iter().all(|other| *other == addresses[0]), "{addresses:?}");
    }
    // Its version is known although the watch has not read the last frame itself.
    let last = watches.last_mut().unwrap();
    let next = timeout(Duration::from_secs(16), last.stream.frame()).await.unwrap().unwrap().unwrap();
    let next: Value = serde_json::from_slice(&next.into_data().unwrap()).unwrap();
    assert_eq!(next, bookmark("9"));
}

#[tokio::test(start_paused = true)]
async fn a_frame_is_mapped_again_when_namespaces_have_changed() {
    let namespaces = listed_namespaces().await;
    let (ke, frames) = (cluster(&namespaces), Arc::default());
    let mut watches = [0; 2].map(|_| SharedWatch::new(&ke, Some(&frames), None));
    let frame = event("edge-ke", "7");
    let mut shown = Vec::new();
    for watch in &mut watches {
        watch.host.send(frame.clone()).unwrap();
        shown.push(watch.next().await.unwrap());
        namespaces.learn(&namespace("other-ke", "ke", "other", "2")).unwrap();
    }
    assert_eq!(shown[0], shown[1]);
    assert_ne!(shown[0].as_ptr(), shown[1].as_ptr());
}

proptest! {
    /// Any watches of two clusters, whichever reads first.
    #[test]
    fn a_watch_shows_the_same_as_alone(
        namespaces in proptest::collection::vec(
            proptest::sample::select(&["edge-ke", "edge-hz", "new-ke", "gone-ke", "bookmark", "error"]), 1..8,
        ),
        order in proptest::collection::vec(0..4_usize, 0..32),
        learned_at in 0..32_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let known = listed_namespaces().await;
            let clusters = ["ke", "hz"].map(|name| named_cluster(name, &known));
            let frames = Arc::default();
            let sent: Vec<Bytes> = namespaces.iter().map(|name| written(Encoding::Json, name)).collect();
            // Two watches of each cluster, each beside one that shares nothing.
            let mut pairs = [0, 0, 1, 1].map(|cluster| {
                [Some(&frames), None].map(|frames| SharedWatch::new(&clusters[cluster], frames, Some(Beginning::Changes)))
            });
            let mut next = [0; 4];
            for (step, pair) in order.iter().copied().chain((0..4).cycle().take(4 * sent.len())).enumerate() {
                if step == learned_at {
                    known.learn(&namespace("new-ke", "ke", "new", "2")).unwrap();
                }
                let Some(frame) = sent.get(next[pair]) else { continue };
                next[pair] += 1;
                for watch in &pairs[pair] {
                    watch.host.send(frame.clone()).unwrap();
                }
                let [sharing, alone] = &mut pairs[pair];
                let (sharing, alone) = tokio::join!(sharing.next(), alone.next());
                assert_eq!(sharing, alone);
            }
            for [sharing, alone] in pairs {
                let read = async |watch: SharedWatch| {
                    drop(watch.host);
                    watch.stream.collect().await.unwrap().to_bytes()
                };
                let (sharing, alone) = tokio::join!(read(sharing), read(alone));
                assert_eq!(sharing, alone);
            }
        });
    }
}
