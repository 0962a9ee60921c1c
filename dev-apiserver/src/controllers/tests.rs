use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::auth::tokens::Tokens;
use crate::store::Store;
use crate::write::{Deletion, Writer, create, delete};

fn new_cluster() -> Store {
    let store = Store::new();
    crate::seed::seed(&store);
    settle(&store);
    store
}

/// Reconciles until nothing changes.
fn settle(store: &Store) {
    let mut kubelet = Kubelet::default();
    let tokens = Tokens::new(Arc::new(Store::new()));
    let issuer = Issuer { serving_ca: "CA", tokens: &tokens };
    let mut seen = 0;
    let mut now = Instant::now();
    for _ in 0..200 {
        let before = store.read(State::revision);
        let namespaces = store.read(|state| dirty(state, seen));
        let due = kubelet.due(now);
        seen = before;
        if namespaces.is_empty() && due.is_empty() {
            match kubelet.next() {
                Some(next) => now = next,
                None => return,
            }
        }
        for namespace in namespaces.into_iter().chain(due) {
            store.write(|state| reconcile(state, &namespace, &issuer, &mut kubelet, now));
        }
    }
    panic!("the state does not become stable");
}

fn make(store: &Store, group: &'static str, resource: &'static str, object: Value) -> Arc<Value> {
    store
        .write(|state| create(state, kinds::of(group, resource), "default", object, Writer::CONTROLLER, false))
        .unwrap()
}

fn list(store: &Store, group: &'static str, resource: &'static str) -> Vec<Arc<Value>> {
    store.read(|state| state.list(kinds::of(group, resource), Some("default")).cloned().collect())
}

fn deployment(image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeSelector": {"location": "beijing"}, "containers": [{"name": "c", "image": image}]},
        }},
    })
}

#[tokio::test]
async fn a_deployment_becomes_pods_on_the_right_nodes() {
    let store = new_cluster();
    make(&store, "apps", "deployments", deployment("a:1"));
    settle(&store);
    let status = list(&store, "apps", "deployments")[0]["status"].clone();
    assert_eq!((&status["availableReplicas"], &status["observedGeneration"]), (&json!(4), &json!(1)));
    let pods = list(&store, "", "pods");
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(|pod| pod["spec"]["nodeName"].as_str().unwrap().starts_with("beijing-")));
}

#[tokio::test]
async fn a_new_template_replaces_all_pods_and_keeps_the_old_set() {
    let store = new_cluster();
    make(&store, "apps", "deployments", deployment("a:1"));
    settle(&store);
    store.write(|state| {
        let mut next = Value::clone(state.get(kinds::of("apps", "deployments"), "default", "web").unwrap());
        next["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2".into();
        state.put(kinds::of("apps", "deployments"), next);
    });
    settle(&store);
    let pods = list(&store, "", "pods");
    assert!(pods.len() == 4 && pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "a:2"));
    let sets = list(&store, "apps", "replicasets");
    let mut sizes: Vec<_> = sets.iter().map(|set| set["spec"]["replicas"].as_u64().unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 4]);
}

#[tokio::test]
async fn dependents_of_a_deployment_are_deleted_with_it() {
    let store = new_cluster();
    let made = make(&store, "apps", "deployments", deployment("a:1"));
    settle(&store);
    store.write(|state| {
        let kind = kinds::of("apps", "deployments");
        let found = Arc::clone(state.get(kind, "default", object::name(&made)).unwrap());
        delete(state, kind, &found, &Deletion::foreground()).unwrap();
    });
    settle(&store);
    assert!(list(&store, "apps", "deployments").is_empty() && list(&store, "apps", "replicasets").is_empty());
    assert!(list(&store, "", "pods").is_empty());
}

#[tokio::test]
async fn jobs_daemon_sets_and_stateful_sets_create_pods() {
    let store = new_cluster();
    let template = |name: &str| json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = |name: &str| json!({"metadata": {"name": name}, "spec": {"replicas": 2, "serviceName": "s", "selector": {"matchLabels": {"app": name}}, "template": template(name)}});
    make(&store, "apps", "daemonsets", set("d"));
    make(&store, "apps", "statefulsets", set("s"));
    let mut job = json!({"metadata": {"name": "j"}, "spec": {"completions": 2, "template": template("j")}});
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    make(&store, "batch", "jobs", job);
    settle(&store);
    assert_eq!(list(&store, "apps", "daemonsets")[0]["status"]["numberReady"], 4);
    assert_eq!(list(&store, "apps", "statefulsets")[0]["status"]["readyReplicas"], 2);
    let job = &list(&store, "batch", "jobs")[0]["status"];
    assert_eq!((&job["succeeded"], &job["conditions"][1]["type"]), (&json!(2), &json!("Complete")));
    let names: Vec<_> = list(&store, "", "pods").iter().map(|pod| object::name(pod).to_owned()).collect();
    assert!(names.contains(&"s-0".to_owned()) && names.contains(&"s-1".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_service_has_the_addresses_of_its_pods() {
    let store = new_cluster();
    make(&store, "apps", "deployments", deployment("a:1"));
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    make(&store, "", "services", service);
    settle(&store);
    let slices = list(&store, "discovery.k8s.io", "endpointslices");
    assert_eq!(slices[0]["endpoints"].as_array().unwrap().len(), 4);
    assert_eq!(list(&store, "", "endpoints")[0]["subsets"][0]["ports"][0]["port"], 80);
}

#[tokio::test]
async fn a_namespace_is_removed_once_it_is_empty() {
    let store = new_cluster();
    let namespaces = kinds::of("", "namespaces");
    store.write(|state| {
        create(state, namespaces, "", json!({"metadata": {"name": "gone"}}), Writer::CONTROLLER, false).unwrap();
    });
    settle(&store);
    let kept = json!({"metadata": {"name": "kept", "finalizers": ["a/b"]}});
    store.write(|state| create(state, kinds::of("", "configmaps"), "gone", kept, Writer::CONTROLLER, false).unwrap());
    store.write(|state| {
        let found = Arc::clone(state.get(namespaces, "", "gone").unwrap());
        delete(state, namespaces, &found, &Deletion::default()).unwrap();
    });
    settle(&store);
    store.write(|state| {
        let ending = state.get(namespaces, "", "gone").expect("a finalizer keeps it");
        assert_eq!(ending["status"]["conditions"][4]["status"], "True");
        let refused = create(
            state,
            kinds::of("", "configmaps"),
            "gone",
            json!({"metadata": {"name": "x"}}),
            Writer::CONTROLLER,
            false,
        );
        assert_eq!(refused.unwrap_err().details.unwrap().causes[0].cause_type, "NamespaceTerminating");
        state.remove(kinds::of("", "configmaps"), "gone", "kept");
    });
    settle(&store);
    assert!(store.read(|state| state.get(namespaces, "", "gone").is_none()));
}

#[test]
fn a_stateful_set_has_a_revision_for_each_template() {
    let store = new_cluster();
    let spec = |image: &str| {
        json!({"replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {
            "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": image}]},
        }})
    };
    let set = make(&store, "apps", "statefulsets", json!({"metadata": {"name": "db"}, "spec": spec("db:1")}));
    settle(&store);
    let sets = kinds::of("apps", "statefulsets");
    let write = |template: &Value| {
        store.write(|state| {
            let mut changed = Value::clone(state.get(sets, "default", "db").unwrap());
            changed["spec"]["template"] = template.clone();
            state.put(sets, changed);
        });
        settle(&store);
    };
    let mut second = set["spec"]["template"].clone();
    second["spec"]["containers"][0]["image"] = "db:2".into();
    write(&second);
    let revisions = || {
        let list = |state: &State| {
            let all = state.list(kinds::of("apps", "controllerrevisions"), Some("default"));
            let shown = all.map(|one| {
                let image = &one["data"]["spec"]["template"]["spec"]["containers"][0]["image"];
                (one["revision"].as_u64().unwrap(), image.as_str().unwrap().to_owned())
            });
            shown.collect::<BTreeSet<_>>()
        };
        store.read(list)
    };
    let set = |pairs: [(u64, &str); 2]| pairs.map(|(number, image)| (number, image.to_owned())).into_iter().collect();
    assert_eq!(revisions(), set([(1, "db:1"), (2, "db:2")]));
    write(&first_template(&second));
    assert_eq!(revisions(), set([(2, "db:2"), (3, "db:1")]), "rolled back");
}

fn first_template(template: &Value) -> Value {
    let mut first = template.clone();
    first["spec"]["containers"][0]["image"] = "db:1".into();
    first
}

#[test]
fn a_secret_gets_a_token_of_its_service_account() {
    let store = new_cluster();
    make(&store, "", "serviceaccounts", json!({"metadata": {"name": "robot"}}));
    let secret = |name: &str, account: &str| {
        json!({"type": "kubernetes.io/service-account-token", "metadata": {"name": name, "annotations": {
            "kubernetes.io/service-account.name": account,
        }}})
    };
    make(&store, "", "secrets", secret("one", "robot"));
    make(&store, "", "secrets", secret("two", "nobody"));
    settle(&store);
    store.read(|state| {
        let one = state.get(kinds::of("", "secrets"), "default", "one").unwrap();
        assert_eq!(one["data"]["namespace"], "ZGVmYXVsdA==");
        assert!(one["data"]["token"].is_string());
        assert!(state.get(kinds::of("", "secrets"), "default", "two").is_none());
    });
}

#[test]
fn budgets_and_quotas_count_pods() {
    let store = new_cluster();
    for name in ["a", "b"] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        make(&store, "", "pods", pod);
    }
    let budget = json!({"metadata": {"name": "web"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "web"}},
    }});
    make(&store, "policy", "poddisruptionbudgets", budget);
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "5", "requests.cpu": "1"}}});
    make(&store, "", "resourcequotas", quota);
    settle(&store);
    store.read(|state| {
        let status = &state.get(kinds::of("policy", "poddisruptionbudgets"), "default", "web").unwrap()["status"];
        let counts = ["currentHealthy", "desiredHealthy", "disruptionsAllowed"].map(|field| status[field].as_u64());
        assert_eq!(counts, [Some(2), Some(1), Some(1)]);
        let quota = state.get(kinds::of("", "resourcequotas"), "default", "few").unwrap();
        assert_eq!(quota["status"]["used"], json!({"pods": "2"}));
    });
}
