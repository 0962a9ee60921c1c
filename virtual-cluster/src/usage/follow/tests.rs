use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use host_client::api::{Change, HostApi as _};
use host_client::in_memory::answered_by;
use http::{Request, Response};
use kube_wire::gvr::GroupResource;
use ops::drain::Tasks;
use rewrite::ClusterName;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::config::Shares;
use crate::namespaces::{Namespaces, PATH};
use crate::provisioner::testing::FakeHost;

const GEARS: &str = "gears.example.com";
/// By then, every list has ended.
const LATER: Duration = Duration::from_secs(20);

/// A host with one gear, in the namespace of a virtual cluster.
struct Host {
    usage: Arc<Usage>,
    definitions: Arc<Definitions>,
    served: watch::Sender<Option<Arc<Vec<Resource>>>>,
    shown: Arc<Mutex<Shown>>,
    _tasks: Tasks,
}

/// What the host shows of the gear.
struct Shown {
    length: usize,
    /// The paths of all lists so far.
    lists: Vec<String>,
}

impl Host {
    async fn new() -> Self {
        let cluster = ClusterName::new("a").unwrap();
        let namespaces = Arc::new(Namespaces::new([cluster.clone()]));
        let host = FakeHost::new();
        let labels = json!({"atoll.dev/virtual-cluster": "a", "atoll.dev/namespace": "x"});
        let metadata = json!({"name": "x-a", "uid": "x", "resourceVersion": "1", "labels": labels});
        host.put(&format!("{PATH}/x-a"), json!({"metadata": metadata}));
        tokio::select! {
            () = namespaces.follow(host.follow::<Value>(PATH, "")) => {}
            () = namespaces.synced() => {}
        }
        let usage = Arc::new(Usage::new(namespaces));
        usage.limit(HashMap::from([(cluster, Shares::default())]));

        let (tasks, definitions) = (Tasks::new(), Arc::new(Definitions::default()));
        let shown = Arc::new(Mutex::new(Shown { length: 0, lists: Vec::new() }));
        let answering = Arc::clone(&shown);
        let host = answered_by(Arc::new(move |request| answering.lock().unwrap().answer(request)), &tasks);
        let (served, resources) = watch::channel(None);
        let counting = keep(Arc::clone(&usage), Api::new(host), resources, Arc::clone(&definitions));
        tasks.spawn_until_cancelled("usage", counting);
        definitions.take(&Change::Synced);
        Self { usage, definitions, served, shown, _tasks: tasks }
    }

    /// Discovery lists this version of the gears first.
    fn serve(&self, version: Option<&str>) {
        let resource = GroupResource { group: "example.com", resource: "gears" };
        let gears = version.and_then(|version| Resource::new(resource, version));
        self.served.send_replace(Some(Arc::new(gears.into_iter().collect())));
    }

    /// The definition has this storage version and this generation, and the host shows this length.
    fn define(&self, storage: &str, generation: i64, length: usize) {
        self.shown.lock().unwrap().length = length;
        let versions = json!([{"name": storage, "served": true, "storage": true}]);
        let metadata = json!({"name": GEARS, "uid": "gears", "generation": generation});
        let definition = json!({"metadata": metadata, "spec": {"versions": versions}});
        self.definitions.take(&Change::Applied(serde_json::from_value(definition).unwrap()));
    }

    /// What counts, and the paths of the lists since the last call.
    fn counted(&self) -> ((u64, u64), Vec<String>) {
        let held = self.usage.held(&ClusterName::new("a").unwrap());
        ((held.objects, held.bytes), std::mem::take(&mut self.shown.lock().unwrap().lists))
    }
}

impl Shown {
    fn answer(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return Response::new(Bytes::new());
        }
        self.lists.push(request.uri().path().to_owned());
        let mut gear = json!({"metadata": {"name": "one", "namespace": "x-a", "resourceVersion": "7"}, "text": ""});
        gear["text"] = "x".repeat(self.length - gear.to_string().len()).into();
        let list = json!({"metadata": {"resourceVersion": "7"}, "items": [gear]});
        Response::new(list.to_string().into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_counts_as_long_as_its_definition_exists() {
    let host = Host::new().await;
    let paths = |version: &str| vec![format!("/apis/example.com/{version}/gears")];
    host.define("v1", 1, 900);
    sleep(REDEFINED).await;
    host.serve(Some("v2"));
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), paths("v1")));

    // The definition hides a field. The gears are counted again, but as large as before.
    host.define("v1", 2, 200);
    let revision = |generation| Revision { uid: "gears".into(), generation };
    sleep(REDEFINED / 2).await;
    assert!(host.usage.is_counted(GEARS, &revision(1)) && !host.usage.is_counted(GEARS, &revision(2)));
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), paths("v1")));
    assert!(host.usage.is_counted(GEARS, &revision(2)) && host.usage.is_complete());
    // A change of its metadata is no reason to count again.
    host.define("v1", 2, 200);
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), vec![]));
    // Another version stores them.
    host.define("v2", 3, 300);
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), paths("v2")));

    // The host does not serve them for a while, and then with another schema.
    host.serve(None);
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), vec![]));
    host.define("v2", 4, 250);
    host.serve(Some("v2"));
    sleep(LATER).await;
    assert_eq!(host.counted(), ((1, 900), paths("v2")));

    host.serve(None);
    let definition = json!({"metadata": {"name": GEARS}});
    host.definitions.take(&Change::Deleted(serde_json::from_value(definition).unwrap()));
    sleep(LATER).await;
    assert_eq!(host.counted(), ((0, 0), vec![]));
    assert!(!host.usage.is_counted(GEARS, &revision(4)));
}

#[tokio::test(start_paused = true)]
async fn another_resource_counts_as_long_as_it_is_served() {
    let host = Host::new().await;
    host.shown.lock().unwrap().length = 900;
    host.serve(Some("v1"));
    sleep(LATER).await;
    assert_eq!(host.counted().0, (1, 900));
    host.serve(None);
    sleep(LATER).await;
    assert_eq!(host.counted(), ((0, 0), vec![]));
}
