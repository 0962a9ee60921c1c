use std::time::Duration;

use host_client::api::{HostApi as _, Read};
use rewrite::HostNamespace;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::namespaces::PATH;
use crate::provisioner::testing::FakeHost;
use crate::usage::meter::{Meter, Step};

const CONFIG_MAPS: GroupResource<'_> = GroupResource { group: "", resource: "configmaps" };

fn cluster(name: &str) -> ClusterName {
    ClusterName::new(name).unwrap()
}

fn namespace(name: &str, cluster: &str) -> Value {
    let labels = json!({"atoll.dev/virtual-cluster": cluster, "atoll.dev/namespace": name});
    json!({"metadata": {"name": format!("{name}-{cluster}"), "uid": name, "resourceVersion": "100", "labels": labels}})
}

/// Two virtual clusters `a` and `b` with the namespaces `x` and `y` each. All objects are ConfigMaps.
struct Host {
    usage: Usage,
    meter: Meter,
}

impl Host {
    async fn new(shares: &Shares) -> Self {
        let names = ["a", "b"].map(cluster);
        let namespaces = Arc::new(Namespaces::new(names.clone()));
        let host = FakeHost::new();
        for (name, cluster) in [("x", "a"), ("y", "a"), ("x", "b"), ("y", "b")] {
            host.put(&format!("{PATH}/{name}-{cluster}"), namespace(name, cluster));
        }
        tokio::select! {
            () = namespaces.follow(host.follow::<Value>(PATH, "")) => {}
            () = namespaces.synced() => {}
        }
        let usage = Usage::new(namespaces);
        usage.limit(names.into_iter().map(|name| (name, shares.clone())).collect());
        let meter = Meter::new("configmaps".into(), false);
        Self { usage, meter }
    }

    fn read(&mut self, read: Read) -> Step {
        self.meter.take(read, &mut self.usage.accounts(), |namespace| self.usage.owner(namespace)).unwrap()
    }

    fn event(&mut self, event: &str, namespace: &str, name: &str, length: usize) {
        let frame = json!({"type": event, "object": object(namespace, name, length)}).to_string();
        assert_eq!(self.read(Read::Frame(frame.into())), Step::Reached("7".to_owned()));
    }

    fn list(&mut self, objects: &[(&str, &str, usize)]) {
        for (namespace, name, length) in objects {
            let item = to_raw_value(&object(namespace, name, *length)).unwrap();
            assert_eq!(self.read(Read::Item(item)), Step::Continue);
        }
        assert_eq!(self.read(Read::Listed("7".to_owned())), Step::Listed);
    }

    fn room(&self, cluster_name: &str, bytes: u64) -> Result<(), String> {
        self.usage.room(&cluster(cluster_name), CONFIG_MAPS, bytes).map_err(|full| full.to_string())
    }

    fn held(&self, cluster_name: &str) -> (u64, u64) {
        let held = self.usage.held(&cluster(cluster_name));
        (held.objects, held.bytes)
    }

    fn reached(&self, cluster_name: &str) -> String {
        self.usage.reached(&cluster(cluster_name)).to_string()
    }
}

/// A ConfigMap whose JSON has this length.
fn object(namespace: &str, name: &str, length: usize) -> Value {
    let mut object = json!({"metadata": {"name": name, "namespace": namespace, "resourceVersion": "7"}, "data": ""});
    object["data"] = "x".repeat(length - object.to_string().len()).into();
    object
}

fn few(objects: u64) -> Shares {
    Shares { objects, ..Shares::default() }
}

#[tokio::test]
async fn objects_of_all_namespaces_count() {
    let mut host = Host::new(&few(3)).await;
    host.list(&[("x-a", "one", 200), ("y-a", "one", 200), ("x-b", "one", 200), ("default", "one", 200)]);
    assert_eq!((host.held("a"), host.held("b")), ((2, 400), (1, 200)));
    assert_eq!((host.room("a", 0), host.reached("a")), (Ok(()), String::new()));

    host.event("ADDED", "x-a", "two", 300);
    let refused = "exceeded quota: atoll, requested: count/configmaps=1, used: count/configmaps=3, \
                   limited: count/configmaps=3";
    assert_eq!((host.room("a", 0), host.reached("a")), (Err(refused.to_owned()), "configmaps=3".to_owned()));
    assert_eq!((host.room("b", 0), host.reached("b")), (Ok(()), String::new()));
    let secrets = GroupResource { group: "", resource: "secrets" };
    assert_eq!(host.usage.room(&cluster("a"), secrets, 0), Ok(()));

    // The same object twice, and one that grows.
    host.event("ADDED", "x-a", "two", 300);
    host.event("MODIFIED", "x-a", "two", 500);
    assert_eq!(host.held("a"), (3, 900));
    host.event("DELETED", "x-a", "two", 500);
    host.event("DELETED", "x-a", "two", 500);
    assert_eq!((host.held("a"), host.room("a", 0)), ((2, 400), Ok(())));
}

#[tokio::test]
async fn bytes_of_all_namespaces_count() {
    const MIB: usize = 1024 * 1024;
    let mut host = Host::new(&Shares { storage_mib: 2, ..Shares::default() }).await;
    host.list(&[("x-a", "one", MIB), ("x-b", "one", 200)]);
    assert_eq!((host.room("a", 1024 * 1024), host.reached("a")), (Ok(()), String::new()));
    let refused = "exceeded quota: atoll, requested: storage=1048577, used: storage=1048576, limited: storage=2097152";
    assert_eq!(host.room("a", 1024 * 1024 + 1), Err(refused.to_owned()));
    let grow = |host: &Host, name: &str| host.usage.room_to_grow(&cluster(name), 7).map_err(|full| full.to_string());
    assert_eq!(grow(&host, "a"), Ok(()));

    host.event("MODIFIED", "x-a", "one", 2 * MIB);
    assert_eq!((host.reached("a"), host.reached("b")), ("storage=2097152".to_owned(), String::new()));
    let refused = "exceeded quota: atoll, requested: storage=7, used: storage=2097152, limited: storage=2097152";
    assert_eq!((grow(&host, "a"), grow(&host, "b")), (Err(refused.to_owned()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_recent_versions_count() {
    const MIB: usize = 1024 * 1024;
    let mut host = Host::new(&Shares { written_mib: 2, ..Shares::default() }).await;
    // What existed before does not count.
    host.list(&[("x-a", "old", 3 * MIB)]);
    host.event("MODIFIED", "x-a", "one", MIB);
    host.event("MODIFIED", "default", "one", 9 * MIB);
    assert_eq!((host.room("a", MIB as u64), host.reached("a")), (Ok(()), String::new()));
    let refused = "exceeded quota: atoll, requested: written=1048577, used: written=1048576, limited: written=2097152";
    assert_eq!(host.room("a", MIB as u64 + 1), Err(refused.to_owned()));

    // A deletion removes no earlier version.
    host.event("ADDED", "y-a", "two", MIB);
    host.event("DELETED", "y-a", "two", MIB);
    host.event("DELETED", "x-a", "one", MIB);
    host.event("DELETED", "x-a", "old", 3 * MIB);
    assert_eq!((host.held("a"), host.reached("a")), ((0, 0), "written=2097152".to_owned()));
    assert_eq!((host.room("b", MIB as u64), host.reached("b")), (Ok(()), String::new()));

    tokio::time::advance(Duration::from_secs(11 * 60)).await;
    assert_eq!((host.room("a", 2 * MIB as u64), host.reached("a")), (Ok(()), String::new()));
    host.event("ADDED", "x-a", "one", 2 * MIB);
    // A virtual cluster of the same name begins with nothing.
    host.usage.limit(HashMap::new());
    assert_eq!(host.usage.written(&cluster("a")), 0);
}

#[tokio::test]
async fn single_resources_have_other_limits() {
    let exceptions = BTreeMap::from([("configmaps".to_owned(), 1), ("deployments.apps".to_owned(), 0)]);
    let mut host = Host::new(&Shares { exceptions, ..Shares::default() }).await;
    assert_eq!(host.room("a", 0), Ok(()));
    host.list(&[("x-a", "one", 200)]);
    assert!(host.room("a", 0).is_err());
    let deployments = GroupResource { group: "apps", resource: "deployments" };
    let refused = host.usage.room(&cluster("a"), deployments, 0).unwrap_err().to_string();
    assert!(refused.ends_with("limited: count/deployments.apps=0"), "{refused}");
}

#[tokio::test]
async fn a_new_list_replaces_the_former_one() {
    let mut host = Host::new(&Shares::default()).await;
    host.list(&[("x-a", "one", 200), ("y-a", "two", 200)]);
    host.read(Read::Restarted { is_expired: true });
    let item = to_raw_value(&object("x-a", "incomplete", 200)).unwrap();
    host.read(Read::Item(item));
    host.read(Read::Restarted { is_expired: true });
    // The same object can be in two pages.
    host.list(&[("x-a", "one", 300), ("x-b", "three", 200), ("x-a", "one", 400)]);
    assert_eq!((host.held("a"), host.held("b")), ((1, 400), (1, 200)));
    host.event("DELETED", "x-a", "one", 400);
    assert_eq!(host.held("a"), (0, 0));
}

/// If a definition changes, the host can hide fields that etcd still stores.
#[tokio::test]
async fn a_version_does_not_become_smaller() {
    let mut host = Host::new(&Shares::default()).await;
    host.event("ADDED", "x-a", "one", 900);
    host.list(&[("x-a", "one", 200), ("x-a", "two", 300)]);
    assert_eq!(host.held("a"), (2, 1200));
    host.event("MODIFIED", "x-a", "two", 250);
    assert_eq!(host.held("a"), (2, 1200));
    // The next version has only the fields that are shown.
    let mut next = object("x-a", "one", 200);
    next["metadata"]["resourceVersion"] = "8".into();
    let frame = json!({"type": "MODIFIED", "object": next}).to_string();
    assert_eq!(host.read(Read::Frame(frame.into())), Step::Reached("8".to_owned()));
    assert_eq!(host.held("a"), (2, 500));
    host.list(&[]);
    host.list(&[("x-a", "one", 200)]);
    assert_eq!(host.held("a"), (1, 200));
}

/// An object without a namespace, whose JSON has this length.
fn cluster_scoped(name: &str, metadata: &Value, length: usize) -> Value {
    let mut object = object("", name, 200);
    object["metadata"].as_object_mut().unwrap().remove("namespace");
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().cloned().unwrap());
    object["data"] = "".into();
    object["data"] = "x".repeat(length - object.to_string().len()).into();
    object
}

#[tokio::test]
async fn cluster_scoped_objects_count() {
    let own = |cluster: &str| json!({"labels": {"atoll.dev/virtual-cluster": cluster}});
    let shared = |clusters: &[&str]| {
        let overlays: serde_json::Map<_, _> =
            clusters.iter().map(|name| (format!("overlay.atoll.dev/{name}"), json!("{}"))).collect();
        json!({"labels": {"atoll.dev/shared": ""}, "annotations": overlays})
    };
    let mut host = Host::new(&few(2)).await;
    let list = |host: &mut Host, objects: &[Value]| {
        for object in objects {
            host.read(Read::Item(to_raw_value(object).unwrap()));
        }
        host.read(Read::Listed("7".to_owned()));
    };
    let event = |host: &mut Host, event: &str, object: Value| {
        host.read(Read::Frame(json!({"type": event, "object": object}).to_string().into()));
    };
    list(
        &mut host,
        &[
            cluster_scoped("one", &own("a"), 300),
            cluster_scoped("two", &shared(&["a", "b"]), 400),
            // Those of the operator.
            cluster_scoped("three", &json!({}), 400),
            cluster_scoped("four", &json!({"annotations": {"overlay.atoll.dev/a": "{}"}}), 400),
        ],
    );
    assert_eq!((host.held("a"), host.held("b")), ((2, 700), (1, 400)));
    assert!(host.room("a", 0).is_err() && host.room("b", 0).is_ok());

    event(&mut host, "MODIFIED", cluster_scoped("two", &shared(&["b"]), 400));
    event(&mut host, "ADDED", cluster_scoped("five", &own("b"), 500));
    event(&mut host, "MODIFIED", cluster_scoped("three", &own("b"), 400));
    assert_eq!((host.held("a"), host.held("b")), ((1, 300), (3, 1300)));
    event(&mut host, "DELETED", cluster_scoped("two", &shared(&["b"]), 400));
    event(&mut host, "DELETED", cluster_scoped("two", &shared(&["b"]), 400));
    event(&mut host, "MODIFIED", cluster_scoped("three", &json!({}), 400));
    assert_eq!((host.held("a"), host.held("b")), ((1, 300), (1, 500)));
    // The same object can be in two pages.
    let six = [own("a"), own("b")].map(|own| cluster_scoped("six", &own, 300));
    list(&mut host, &six);
    assert_eq!((host.held("a"), host.held("b")), ((0, 0), (1, 300)));
    host.usage.accounts().forget(&"configmaps".into());
    assert_eq!(host.held("b"), (0, 0));
}

/// The agent counts those of objects that several virtual clusters have when it writes them.
#[tokio::test(start_paused = true)]
async fn recent_versions_of_cluster_scoped_objects_count() {
    let mut host = Host::new(&Shares::default()).await;
    let own = json!({"labels": {"atoll.dev/virtual-cluster": "a"}});
    let shared = |clusters: &[&str]| {
        let overlays: serde_json::Map<_, _> =
            clusters.iter().map(|name| (format!("overlay.atoll.dev/{name}"), json!("{}"))).collect();
        json!({"labels": {"atoll.dev/shared": ""}, "annotations": overlays})
    };
    for (name, metadata) in [("one", own), ("two", shared(&["a"])), ("three", shared(&["a", "b"]))] {
        let event = json!({"type": "ADDED", "object": cluster_scoped(name, &metadata, 400)});
        host.read(Read::Frame(event.to_string().into()));
    }
    assert_eq!((host.usage.written(&cluster("a")), host.usage.written(&cluster("b"))), (800, 0));
    // The other one leaves.
    let mut left = cluster_scoped("three", &shared(&["a"]), 400);
    left["metadata"]["resourceVersion"] = "8".into();
    host.read(Read::Frame(json!({"type": "MODIFIED", "object": left}).to_string().into()));
    assert_eq!((host.usage.written(&cluster("a")), host.usage.written(&cluster("b"))), (800, 0));
}

/// Between two watches, versions can come and go.
#[tokio::test(start_paused = true)]
async fn recent_versions_in_later_lists_count() {
    let mut host = Host::new(&Shares::default()).await;
    host.list(&[("x-a", "one", 200)]);
    assert_eq!(host.usage.written(&cluster("a")), 0);
    host.list(&[("x-a", "one", 200), ("y-a", "two", 300), ("default", "three", 300)]);
    assert_eq!(host.usage.written(&cluster("a")), 300);
    host.event("MODIFIED", "y-a", "two", 300);
    assert_eq!(host.usage.written(&cluster("a")), 300);
    // The former schema hid a part of a new version.
    host.meter.outdate();
    host.event("ADDED", "x-a", "three", 200);
    host.meter.begin();
    host.list(&[("x-a", "one", 700), ("x-a", "three", 600)]);
    assert_eq!(host.usage.written(&cluster("a")), 300 + 600);
    host.list(&[("x-a", "one", 700), ("x-a", "three", 900)]);
    assert_eq!(host.usage.written(&cluster("a")), 300 + 600);
}

/// Labels and annotations of shared objects are stored there, and clients do not see them.
#[tokio::test(start_paused = true)]
async fn overlays_count_with_their_bytes() {
    let mut host = Host::new(&Shares::default()).await;
    host.usage.learn(&json!({"metadata": {"name": "atoll-root-a", "uid": "root", "resourceVersion": "100",
        "labels": {"atoll.dev/root": "a"}}}));
    let mut overlay = object("atoll-root-a", "one", 300);
    overlay["metadata"]["labels"] = json!({"atoll.dev/overlay": ""});
    let length = overlay.to_string().len() as u64;
    for object in [overlay, object("atoll-root-a", "two", 200)] {
        host.read(Read::Frame(json!({"type": "ADDED", "object": object}).to_string().into()));
    }
    assert_eq!((host.held("a"), host.usage.written(&cluster("a"))), ((0, length), length + 200));
}

#[tokio::test]
async fn copies_of_bindings_do_not_count() {
    let mut host = Host::new(&Shares::default()).await;
    let mut mirror = object("x-a", "atoll:crb:view", 300);
    mirror["metadata"]["labels"] = json!({"atoll.dev/mirror": "view"});
    host.read(Read::Item(to_raw_value(&mirror).unwrap()));
    host.list(&[]);
    let frame = json!({"type": "ADDED", "object": mirror}).to_string();
    host.read(Read::Frame(frame.into()));
    assert_eq!(host.held("a"), (0, 0));
    // Their versions do, once.
    let written = mirror.to_string().len() as u64;
    host.read(Read::Item(to_raw_value(&mirror).unwrap()));
    host.list(&[]);
    assert_eq!(host.usage.written(&cluster("a")), written);
}

#[tokio::test]
async fn the_sums_move_with_the_namespace() {
    let mut host = Host::new(&Shares::default()).await;
    // The watch of objects can be earlier than that of namespaces.
    host.list(&[("x-a", "one", 200), ("new-a", "one", 300)]);
    assert_eq!(host.held("a"), (1, 200));
    host.usage.learn(&namespace("new", "a"));
    host.usage.moved(&NamespaceEvent::Changed(HostNamespace::new("new-a").unwrap()));
    assert_eq!(host.held("a"), (2, 500));
    host.usage.namespaces.forget(&namespace("new", "a"));
    host.usage.moved(&NamespaceEvent::Everything);
    assert_eq!(host.held("a"), (1, 200));
}

#[tokio::test]
async fn a_resource_that_is_not_served_does_not_count() {
    let mut host = Host::new(&few(1)).await;
    host.usage.accounts().begin(["configmaps".into(), "things.example.com".into()]);
    host.list(&[("x-a", "one", 200)]);
    host.usage.accounts().listed("configmaps");
    assert!(!host.usage.is_complete());
    host.usage.accounts().forget(&"things.example.com".into());
    assert!(host.usage.is_complete() && host.held("a") == (1, 200));
    host.usage.accounts().forget(&"configmaps".into());
    assert_eq!(host.held("a"), (0, 0));
}
