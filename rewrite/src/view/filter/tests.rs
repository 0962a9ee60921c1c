use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::View;
use crate::mapping::NodeNames;
use crate::schema::program_for;
use crate::view::tests::mapping;

fn view() -> View {
    View::new(mapping().with_nodes(Arc::new(NodeNames::from([Bytes::from("b1")]))))
}

fn shown(view: &View, group: &str, kind: &str, filter: Filter, host: &Value) -> Option<Value> {
    let mut out: Vec<Bytes> = Vec::new();
    let verdict = view.object(&program_for(group, "v1", kind), filter, &host.to_string().into(), &mut out).unwrap();
    (verdict == Verdict::Shown).then(|| serde_json::from_slice(&out.concat()).unwrap())
}

/// A table of one row, which contains only metadata.
fn row(columns: &[&str], cells: &[&str], metadata: &Value) -> Value {
    let columns: Vec<_> = columns.iter().map(|name| json!({"name": name})).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns,
        "rows": [{"cells": cells, "object": {"metadata": metadata}}]
    })
}

#[test]
fn a_volume_belongs_to_the_owner_of_its_claim() {
    let show = |host: &Value| shown(&view(), "", "persistentvolumes", Filter::ByClaim, host);
    let volume = |namespace: &str| json!({"metadata": {"name": "v"}, "spec": {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "edge-ke"}}});
    assert_eq!(show(&volume("edge-ke")), Some(volume("edge")));
    let table = |claim: &str| row(&["Name", "Claim"], &["v", claim], &json!({"name": "v"}));
    assert_eq!(show(&table("edge-ke/data")), Some(table("edge/data")));
    for foreign in ["edge-hz", "kube-system", "unheard-ke", ""] {
        assert_eq!(show(&volume(foreign)), None, "{foreign}");
        assert_eq!(show(&table(&format!("{foreign}/data"))), None, "{foreign}");
    }
    assert_eq!(show(&json!({"metadata": {"name": "v"}, "spec": {}})), None);
    assert_eq!(show(&table("")), None);
}

#[test]
fn objects_of_a_node_are_shown_with_the_node() {
    let attachment = |node: &str| json!({"metadata": {"name": "a"}, "spec": {"nodeName": node}});
    let table = |node: &str| row(&["Name", "Node"], &["a", node], &json!({"name": "a"}));
    let node = |name: &str| json!({"metadata": {"name": name}});
    for (name, own) in [("b1", true), ("h1", false), ("", false)] {
        for host in [attachment(name), table(name)] {
            let expected = own.then(|| host.clone());
            assert_eq!(shown(&view(), "storage.k8s.io", "volumeattachments", Filter::ByNode, &host), expected);
        }
        for (group, kind) in [("storage.k8s.io", "csinodes"), ("metrics.k8s.io", "nodes")] {
            let expected = own.then(|| node(name));
            assert_eq!(shown(&view(), group, kind, Filter::ByNode, &node(name)), expected, "{kind}.{group}");
        }
    }
}

#[test]
fn a_device_is_shown_with_its_node() {
    let slice = |node: &str| json!({"metadata": {"name": "s"}, "spec": {"nodeName": node, "driver": "d"}});
    let table = |node: &str| row(&["Name", "Node", "Driver"], &["s", node, "d"], &json!({"name": "s"}));
    for (name, own) in [("b1", true), ("h1", false), ("", false)] {
        for host in [slice(name), table(name)] {
            let expected = own.then(|| host.clone());
            assert_eq!(shown(&view(), "resource.k8s.io", "resourceslices", Filter::ByNode, &host), expected);
        }
    }
    let of_all = json!({"metadata": {"name": "s"}, "spec": {"allNodes": true}});
    assert_eq!(shown(&view(), "resource.k8s.io", "resourceslices", Filter::ByNode, &of_all), None);
}

#[test]
fn an_address_belongs_to_the_owner_of_its_service() {
    let projected = ProjectedObjects {
        from: "default".parse().unwrap(),
        to: "default".parse().unwrap(),
        what: Projected::Named("kubernetes"),
        only: false,
    };
    let view = view().with_projected_objects(projected);
    let show = |host: &Value| shown(&view, "networking.k8s.io", "ipaddresses", Filter::ByParent, host);
    let address = |namespace: &str, name: &str| json!({"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": {"group": "", "resource": "services", "namespace": namespace, "name": name}}});
    let table = |parent: &str| row(&["Name", "ParentRef"], &["10.0.0.1", parent], &json!({"name": "10.0.0.1"}));
    // The name of a Service is not mapped, whatever its form.
    assert_eq!(show(&address("edge-ke", "edge-ke")), Some(address("edge", "edge-ke")));
    assert_eq!(show(&table("services/edge-ke/edge-ke")), Some(table("services/edge/edge-ke")));
    assert_eq!(show(&table("gateways.example.com/edge-ke/a")), Some(table("gateways.example.com/edge/a")));
    assert_eq!(show(&address("default", "kubernetes")), Some(address("default", "kubernetes")));
    assert_eq!(show(&table("services/default/kubernetes")), Some(table("services/default/kubernetes")));
    for (namespace, name) in [("edge-hz", "a"), ("kube-system", "kube-dns"), ("default", "other"), ("unheard-ke", "a")]
    {
        assert_eq!(show(&address(namespace, name)), None, "{namespace}/{name}");
        assert_eq!(show(&table(&format!("services/{namespace}/{name}"))), None, "{namespace}/{name}");
    }
    assert_eq!(show(&json!({"metadata": {"name": "10.0.0.1"}, "spec": {}})), None);
    assert_eq!(show(&table("gateways.example.com/a")), None);
    assert_eq!(show(&table("<none>")), None);
}

#[test]
fn only_priorities_that_kubernetes_maintains_are_shown() {
    let schema =
        |annotations: &Value| json!({"metadata": {"name": "catch-all", "annotations": annotations}, "spec": {}});
    let table =
        |annotations: &Value| row(&["Name"], &["catch-all"], &json!({"name": "catch-all", "annotations": annotations}));
    for (annotations, kept) in [
        (json!({"apf.kubernetes.io/autoupdate-spec": "true"}), true),
        (json!({"apf.kubernetes.io/autoupdate-spec": "false"}), false),
        (json!({"apf.kubernetes.io/autoupdate-spec": true}), false),
        (json!({"a": "true"}), false),
        (json!(null), false),
    ] {
        for resource in ["flowschemas", "prioritylevelconfigurations"] {
            for host in [schema(&annotations), table(&annotations)] {
                let expected = kept.then(|| host.clone());
                let shown = shown(&view(), "flowcontrol.apiserver.k8s.io", resource, Filter::Autoupdated, &host);
                assert_eq!(shown, expected, "{resource} {host}");
            }
        }
    }
}

#[test]
fn the_filter_nothing_hides_everything() {
    let hook = json!({"metadata": {"name": "a", "namespace": "edge-ke"}});
    let table = row(&["Name"], &["a"], &json!({"name": "a"}));
    for host in [hook, table] {
        assert_eq!(shown(&view(), "admissionregistration.k8s.io", "webhooks", Filter::Nothing, &host), None);
    }
}

#[test]
fn only_projected_objects_of_the_host_are_shown() {
    let projected = |what, only| {
        let (from, to) = ("kube-system".parse().unwrap(), "default".parse().unwrap());
        view().with_projected_objects(ProjectedObjects { from, to, what, only })
    };
    let object = |namespace: &str, name: &str| json!({"metadata": {"name": name, "namespace": namespace}});
    let about = |namespace: &str, kind: &str, name: &str| json!({"metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"kind": kind, "name": name}});
    let event_row = |namespace: &str, object: &str| {
        row(&["Last Seen", "Object"], &["1s", object], &json!({"name": "e", "namespace": namespace}))
    };
    let source = "kube-system";
    for (what, group, kind, host, expected) in [
        (
            Projected::NamedLikeNodes,
            "coordination.k8s.io",
            "leases",
            object(source, "b1"),
            Some(object("default", "b1")),
        ),
        (Projected::NamedLikeNodes, "coordination.k8s.io", "leases", object(source, "h1"), None),
        (Projected::NamedLikeNodes, "coordination.k8s.io", "leases", object("edge-hz", "b1"), None),
        (
            Projected::Named("kubernetes"),
            "",
            "services",
            object(source, "kubernetes"),
            Some(object("default", "kubernetes")),
        ),
        (Projected::Named("kubernetes"), "", "services", object(source, "kube-dns"), None),
        (Projected::Named("kubernetes"), "", "services", object("default-ke", "a"), Some(object("default", "a"))),
        (Projected::AboutNodes, "", "events", about(source, "Node", "b1"), Some(about("default", "Node", "b1"))),
        (Projected::AboutNodes, "", "events", about(source, "Node", "h1"), None),
        (Projected::AboutNodes, "", "events", about(source, "Pod", "b1"), None),
        (Projected::AboutNodes, "", "events", about("edge-hz", "Node", "b1"), None),
        (Projected::AboutNodes, "", "events", event_row(source, "node/b1"), Some(event_row("default", "node/b1"))),
        (Projected::AboutNodes, "", "events", event_row(source, "pod/b1"), None),
        (Projected::AboutNodes, "", "events", event_row("default-ke", "pod/b1"), Some(event_row("default", "pod/b1"))),
    ] {
        for only in [false, true] {
            let shown = shown(&projected(what, only), group, kind, Filter::ByNamespace, &host);
            assert_eq!(shown, expected, "{host} {only}");
        }
    }
    let elsewhere = object("edge-ke", "a");
    let show = |only| shown(&projected(Projected::Named("a"), only), "", "services", Filter::ByNamespace, &elsewhere);
    assert_eq!((show(false), show(true)), (Some(object("edge", "a")), None));
}
