use serde_json::{Map, json};

use super::*;
use crate::provisioner::testing::FakeHost;
use crate::shared::DEFINITIONS;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// A shared object with these annotations.
fn shared(name: &str, annotations: &[&str]) -> Value {
    let annotations: Map<_, _> = annotations.iter().map(|key| ((*key).to_owned(), json!("{}"))).collect();
    json!({"metadata": {"name": name, "labels": {"atoll.dev/shared": ""}, "annotations": annotations}})
}

fn definition(name: &str, scope: &str, annotations: &[&str]) -> Value {
    let (plural, group) = name.split_once('.').unwrap();
    let mut definition = shared(name, annotations);
    let versions = json!([{"name": "v1", "served": true}]);
    definition["spec"] = json!({"group": group, "names": {"plural": plural}, "scope": scope, "versions": versions});
    definition
}

#[tokio::test]
async fn everything_outside_namespaces_is_found() {
    let host = FakeHost::new();
    for name in ["vc:ke:readers", "vc:ke:atoll:canary", "vc:hz:readers", "admin", "vc:no"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        host.put(&path, json!({"metadata": {"name": name}}));
    }
    for group in ["flowcontrol.apiserver.k8s.io", "scheduling.k8s.io"] {
        host.put(&format!("/apis/{group}"), json!({"preferredVersion": {"version": "v1"}}));
    }
    for (name, owner) in [("atoll-ke", "atoll-root-ke"), ("atoll-x", "other"), ("catch-all", "atoll-root-ke")] {
        let metadata = json!({"name": name, "ownerReferences": [{"name": owner}]});
        host.put(&format!("{SCHEMAS}/{name}"), json!({"metadata": metadata}));
    }
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    host.put(&format!("{classes}/high"), shared("high", &["overlay.atoll.dev/ke", "left.atoll.dev/hz"]));
    host.put(&format!("{DEFINITIONS}/gears.a.io"), definition("gears.a.io", "Cluster", &["overlay.atoll.dev/ke"]));
    host.put(&format!("{DEFINITIONS}/cogs.a.io"), definition("cogs.a.io", "Namespaced", &["overlay.atoll.dev/ke"]));
    let own = json!({"metadata": {"name": "x.ke", "labels": {CLUSTER_LABEL: "ke"}}});
    host.put("/apis/a.io/v1/gears/x.ke", own);
    host.put("/apis/a.io/v1/gears/plain", json!({"metadata": {"name": "plain"}}));
    // A label alone is not enough.
    for name in ["y", "y-ke", "y.hz", ".ke", "ke"] {
        let metadata = json!({"name": name, "labels": {CLUSTER_LABEL: "ke"}});
        host.put(&format!("/apis/a.io/v1/gears/{name}"), json!({"metadata": metadata}));
    }

    let labels =
        json!({"atoll.node-restriction.kubernetes.io/ke": "true", "atoll.node-restriction.kubernetes.io/K E": ""});
    host.put("/api/v1/nodes/n1", json!({"metadata": {"name": "n1", "labels": labels}}));
    host.put("/api/v1/nodes/n2", json!({"metadata": {"name": "n2", "labels": {"location": "ke"}}}));

    let mut found = Vec::new();
    search(&host, |one| found.push(one)).await.unwrap();
    assert!(found.iter().all(|one| one.uid.starts_with("uid-")), "{found:?}");
    let of = |cluster: &str| {
        let of = found.iter().filter(|one| one.cluster.as_str() == cluster);
        of.map(|one| (one.resource.as_str(), one.name.as_str(), one.hold)).collect::<Vec<_>>()
    };
    let (roles, schemas) = ("clusterroles.rbac.authorization.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io");
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    let priorities = "priorityclasses.scheduling.k8s.io";
    assert_eq!(of("hz"), [(roles, "vc:hz:readers", Hold::Whole), (priorities, "high", Hold::Former)]);
    let mut ke = of("ke");
    let position = |name: &str| ke.iter().position(|(_, found, _)| *found == name);
    assert!(position("x.ke") < position("gears.a.io"), "objects before their definition: {ke:?}");
    ke.sort_unstable_by_key(|(_, name, _)| *name);
    let expected = [
        (schemas, "atoll-ke", Hold::Whole),
        (definitions, "cogs.a.io", Hold::Overlay),
        (definitions, "gears.a.io", Hold::Overlay),
        (priorities, "high", Hold::Overlay),
        ("nodes", "n1", Hold::Label),
        (roles, "vc:ke:atoll:canary", Hold::Whole),
        (roles, "vc:ke:readers", Hold::Whole),
        ("gears.a.io", "x.ke", Hold::Whole),
    ];
    assert_eq!(ke, expected);
    assert_eq!(found.len(), 10);
}
