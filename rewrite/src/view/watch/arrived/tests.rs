use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::HostNamespace;
use crate::mapping::Index;
use crate::schema::program_for;
use crate::view::tests::{mapping, view};
use crate::view::{Filter, StreamError, WatchStream};

fn watch(resource: &str, filter: Filter) -> WatchStream {
    WatchStream::new(view(), program_for("", "v1", resource), filter)
}

fn event(kind: &str, object: &serde_json::Value) -> String {
    json!({"type": kind, "object": object}).to_string() + "\n"
}

fn pod(namespace: &str) -> String {
    event("ADDED", &json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "namespace": namespace}}))
}

/// A namespace `new-ke` of the cluster, and no other.
fn newer() -> Mapping {
    let mut index = Index::new();
    index.insert("new-ke".parse().unwrap(), "ke".parse().unwrap(), "new".parse().unwrap()).unwrap();
    Mapping::new("ke".parse().unwrap(), std::sync::Arc::new(index))
}

/// The output for a text, and the names for which the watch then waits.
fn read(watch: &mut WatchStream, text: &str) -> (String, Vec<String>) {
    let mut out: Vec<Bytes> = Vec::new();
    let arrived = watch.read(&Bytes::from(text.to_owned()), &mut out).unwrap();
    (text_of(&out), names(arrived))
}

fn resume(watch: &mut WatchStream) -> (String, Vec<String>) {
    let mut out: Vec<Bytes> = Vec::new();
    let arrived = watch.resume(&mut out).unwrap();
    (text_of(&out), names(arrived))
}

fn text_of(out: &[Bytes]) -> String {
    String::from_utf8(out.concat()).unwrap()
}

fn names(arrived: Arrived) -> Vec<String> {
    arrived.unknown.into_iter().map(|name| String::from_utf8(name.into()).unwrap()).collect()
}

fn nothing() -> (String, Vec<String>) {
    (String::new(), Vec::new())
}

#[test]
fn an_event_in_an_unknown_namespace_waits_for_it() {
    let mut watch = watch("pods", Filter::ByNamespace);
    let text = [pod("edge-ke"), pod("new-ke"), pod("edge-ke")].concat();
    // Also in a frame that began in an earlier chunk.
    let (first, second) = text.split_at(pod("edge-ke").len() + 20);
    assert_eq!(read(&mut watch, first), (pod("edge"), vec![]));
    assert_eq!(read(&mut watch, second), (String::new(), vec!["new-ke".to_owned()]));
    assert!(watch.is_waiting() && watch.finish().is_err());
    assert_eq!(watch.held(), text.len() - pod("edge-ke").len());

    watch.remap(mapping());
    assert_eq!(resume(&mut watch), (String::new(), vec!["new-ke".to_owned()]), "it is still unknown");
    watch.remap(newer());
    assert_eq!(resume(&mut watch), (pod("new"), vec!["edge-ke".to_owned()]));
    watch.remap(mapping());
    assert_eq!(resume(&mut watch), (pod("edge"), vec![]));
    assert!(!watch.is_waiting() && watch.held() == 0 && watch.finish().is_ok());
}

#[test]
fn a_watch_waits_for_a_name_only_once() {
    let mut watch = watch("pods", Filter::ByNamespace);
    let text = [pod("new-ke"), pod("newer-ke"), pod("edge-ke")].concat();
    assert_eq!(read(&mut watch, &text), (String::new(), vec!["new-ke".to_owned()]));
    watch.give_up();
    assert_eq!(resume(&mut watch), (String::new(), vec!["newer-ke".to_owned()]));
    watch.give_up();
    assert_eq!(resume(&mut watch), (pod("edge"), vec![]));
    assert_eq!(read(&mut watch, &text), (pod("edge"), vec![]));
    watch.give_up();
    assert_eq!(read(&mut watch, &pod("other-ke")), (String::new(), vec!["other-ke".to_owned()]), "nothing waited");
}

#[test]
fn remembered_names_are_bounded() {
    let mut watch = watch("pods", Filter::ByNamespace);
    for number in 0..2 * MAX_UNRESOLVED {
        assert_eq!(read(&mut watch, &pod(&format!("n-{number}-ke"))).1.len(), 1);
        watch.give_up();
        assert_eq!(resume(&mut watch), nothing());
    }
    assert_eq!(watch.waits.unresolved.len(), MAX_UNRESOLVED);
}

/// A shortened name of a namespace, which belongs to a cluster that the name does not tell.
fn shortened() -> String {
    HostNamespace::derive(&"n".repeat(63).parse().unwrap(), &"ke".parse().unwrap()).to_string()
}

#[test]
fn only_names_that_can_be_the_clusters_own_wait() {
    let mut watch = watch("pods", Filter::ByNamespace);
    for (namespace, waits) in [("new-ke", true), (&*shortened(), true), ("new-hz", false), ("new", false)] {
        let mut out: Vec<Bytes> = Vec::new();
        let arrived = watch.read(&Bytes::from(pod(namespace)), &mut out).unwrap();
        let expected = waits.then(|| namespace.as_bytes().into());
        assert_eq!((arrived.unknown, arrived.hiding), (Vec::from_iter(expected.clone()), expected), "{namespace}");
        watch.give_up();
        assert_eq!(resume(&mut watch), nothing());
    }
}

/// The name of a namespace that is not shortened is shown in the same way, whether it exists or not.
#[test]
fn references_to_shortened_names_wait() {
    let object = |namespace: &str, about: &str| {
        let about = json!({"kind": "Pod", "name": "a", "namespace": about}).to_string();
        let metadata = json!({"namespace": namespace}).to_string();
        // In the order in which Go writes it.
        let object = format!(r#"{{"kind":"Event","metadata":{metadata},"involvedObject":{about},"related":{about}}}"#);
        format!(r#"{{"type":"ADDED","object":{object}}}"#)
    };
    let shortened = &*shortened();
    for (filter, namespace, about, waits) in [
        (Filter::Everything, "edge-ke", shortened, true),
        (Filter::Everything, "edge-ke", "edge-hz", false),
        (Filter::Everything, "edge-ke", "new-ke", false),
        (Filter::Everything, "edge-ke", "new-hz", false),
        (Filter::ByNamespace, "edge-ke", shortened, true),
        // References in objects of others must not delay this watch.
        (Filter::ByNamespace, "edge-hz", shortened, false),
    ] {
        let mut out: Vec<Bytes> = Vec::new();
        let arrived = watch("events", filter).read(&object(namespace, about).into(), &mut out).unwrap();
        // It does not decide whether the event is visible.
        assert_eq!((!arrived.unknown.is_empty(), arrived.hiding), (waits, None), "{filter:?} {namespace} {about}");
    }
}

#[test]
fn namespaces_wait_for_themselves() {
    let namespace = |name: &str| event("ADDED", &json!({"kind": "Namespace", "metadata": {"name": name}}));
    let mut watch = watch("namespaces", Filter::ByName);
    assert_eq!(read(&mut watch, &namespace("new-ke")), (String::new(), vec!["new-ke".to_owned()]));
    watch.remap(newer());
    assert_eq!(resume(&mut watch), (namespace("new"), vec![]));
}

#[test]
fn frames_do_not_wait_for_known_or_requested_namespaces() {
    let mut by_namespace = watch("pods", Filter::ByNamespace);
    for known in ["edge-ke", "edge-hz", "kube-system"] {
        assert_eq!(read(&mut by_namespace, &pod(known)).1, [""; 0], "{known}");
    }
    let mut named = watch("pods", Filter::Everything);
    named.remap(mapping().with_requested_namespace("new".parse().unwrap()));
    assert_eq!(read(&mut named, &pod("new-ke")), (pod("new"), vec![]));

    let status = json!({"kind": "Status", "apiVersion": "v1", "details": {"kind": "namespaces", "name": "new-ke"}});
    assert_eq!(read(&mut watch("namespaces", Filter::ByName), &event("ERROR", &status)).1, [""; 0]);
}

#[test]
fn bookmarks_are_reported() {
    let bookmark = |metadata: serde_json::Value| event("BOOKMARK", &json!({"kind": "Pod", "metadata": metadata}));
    let text = [
        bookmark(json!({"resourceVersion": "7"})),
        pod("edge-ke"),
        bookmark(json!({"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}})),
        bookmark(json!({})),
        "{\"type\":\"BOOKMARK\"}\n".to_owned(),
    ];
    let mut out: Vec<Bytes> = Vec::new();
    let arrived = watch("pods", Filter::ByNamespace).read(&Bytes::from(text.concat()), &mut out).unwrap();
    let expected = [("7", false), ("9", true), ("", false), ("", false)]
        .map(|(version, ends_initial_events)| Bookmark { resource_version: version.into(), ends_initial_events });
    assert_eq!(arrived, Arrived { bookmarks: expected.to_vec(), ..Arrived::default() });
}

/// It is a frame of its own, also behind a frame whose line is not complete.
#[test]
fn an_error_ends_the_watch() {
    let status = kube_wire::Status::expired("list again");
    for end in [0, 1] {
        let mut watch = watch("pods", Filter::ByNamespace);
        let (event, shown) = (pod("edge-ke"), pod("edge"));
        let before = read(&mut watch, &event[..event.len() - end]).0;
        let all = before + std::str::from_utf8(&watch.error(&status)).unwrap();
        let error =
            json!({"type": "ERROR", "object": serde_json::from_slice::<serde_json::Value>(&status.to_json()).unwrap()});
        let frames: Vec<serde_json::Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(frames, [serde_json::from_str(&shown).unwrap(), error]);
    }
}

proptest! {
    /// A watch that gives up at once writes the same as `push`.
    #[test]
    fn waiting_does_not_change_the_output(
        namespaces in proptest::collection::vec(prop_oneof!["edge-ke", "edge-hz", "[a-c]-ke", "bookmark"], 0..8),
        space in "[ \n]{0,2}",
        size in 1..300_usize,
    ) {
        let text: String = namespaces.iter().map(|namespace| match &**namespace {
            "bookmark" => event("BOOKMARK", &json!({})) + &space,
            _ => pod(namespace).trim_end().to_owned() + &space,
        }).collect();
        let (mut waiting, mut pushing) = (watch("pods", Filter::ByNamespace), watch("pods", Filter::ByNamespace));
        let (mut read, mut pushed): (Vec<Bytes>, Vec<Bytes>) = (Vec::new(), Vec::new());
        for chunk in text.as_bytes().chunks(size).map(Bytes::copy_from_slice) {
            let mut arrived = waiting.read(&chunk, &mut read).unwrap();
            while !arrived.unknown.is_empty() {
                waiting.give_up();
                arrived = waiting.resume(&mut read).unwrap();
            }
            pushing.push(&chunk, &mut pushed).unwrap();
        }
        prop_assert_eq!(text_of(&read), text_of(&pushed));
        prop_assert_eq!(waiting.finish(), pushing.finish().map_err(|error: StreamError| error));
    }
}
