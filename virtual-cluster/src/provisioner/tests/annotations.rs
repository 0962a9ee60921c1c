//! The annotations of a virtual cluster's namespaces that the admission policies read.

use std::collections::BTreeSet;

use rewrite::Guard;

use super::*;
use crate::namespaces::annotations::{NODE_SELECTOR, Reserved};

fn annotations(location: &str) -> Annotations {
    let guard = Guard::new([("location".to_owned(), location.to_owned())], []);
    Annotations::new(&guard, &Reserved::default(), [""; 0], BTreeSet::new())
}

fn annotated(host: &FakeHost) -> Provisioner<FakeHost> {
    let clusters = HashMap::from([(vc(), annotations("beijing"))]);
    Provisioner::of(host.clone(), Arc::new(Namespaces::new([vc()])), Roles::with([view()]), clusters)
}

fn selects(state: &State, name: &str, selector: &str) -> bool {
    state.objects.get(&at(name)).is_some_and(|it| it["metadata"]["annotations"][NODE_SELECTOR] == selector)
}

fn member(name: &str) -> Value {
    let labels = json!({"atoll.dev/virtual-cluster": "vc", "atoll.dev/namespace": name});
    json!({"metadata": {"name": format!("{name}-vc"), "labels": labels, "annotations": {"somebody": "else's"}}})
}

#[tokio::test(start_paused = true)]
async fn annotations_exist_from_the_beginning_and_are_restored() {
    let host = FakeHost::new();
    // One from an earlier version, and one that is being deleted.
    host.put(&at("old-vc"), member("old"));
    let mut ending = member("ending");
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    host.put(&at("ending-vc"), ending);
    let provisioner = annotated(&host);
    with(&provisioner, async {
        provisioner.annotated().await;
        for name in ["old-vc", "ending-vc"] {
            assert!(selects(&host.lock(), name, "location=beijing"), "{name}");
        }
        provisioner.provisioned().await;
        for name in ["atoll-root-vc", "default-vc", "kube-system-vc"] {
            assert!(selects(&host.lock(), name, "location=beijing"), "{name}");
            host.edit(&at(name), |it| it["metadata"]["annotations"] = json!({"somebody": "else's"}));
            host.until(|state| selects(state, name, "location=beijing")).await;
            assert_eq!(host.lock().objects[&at(name)]["metadata"]["annotations"]["somebody"], "else's");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn annotations_follow_the_configuration_and_remain_after_removal() {
    let host = FakeHost::new();
    let provisioner = annotated(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        provisioner.serve(HashMap::from([(vc(), annotations("hangzhou"))]));
        for name in ["atoll-root-vc", "default-vc"] {
            host.until(|state| selects(state, name, "location=hangzhou")).await;
        }
        provisioner.annotated().await;
        provisioner.shared.namespaces.serve([]);
        provisioner.serve(HashMap::new());
        host.edit(&at("default-vc"), |it| it["metadata"]["annotations"][NODE_SELECTOR] = json!("a=b"));
        host.until(|state| finalizers_of(state, "default-vc") == 0).await;
        assert!(
            selects(&host.lock(), "default-vc", "a=b") && selects(&host.lock(), "atoll-root-vc", "location=hangzhou")
        );
    })
    .await;
}

fn finalizers_of(state: &State, namespace: &str) -> usize {
    let mirror = state.objects.get(&mirror_at(namespace));
    mirror.and_then(|mirror| mirror["metadata"]["finalizers"].as_array()).map_or(0, Vec::len)
}
