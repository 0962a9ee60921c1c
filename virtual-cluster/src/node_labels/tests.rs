use std::collections::BTreeMap;

use host_client::api::HostApi;
use serde_json::{Value as Json, json};
use tokio::time::timeout;

use super::*;
use crate::clusters::ByName;
use crate::config;
use crate::namespaces::{Namespaces, annotations::Reserved};
use crate::provisioner::testing::FakeHost;

/// The virtual clusters `ke`, with this selector and these expressions, and `plain`, with a label.
fn configured(selector: &Json, expressions: &Json) -> Vec<config::VirtualCluster> {
    let ke = json!({"name": "ke", "nodeSelector": selector, "nodeExpressions": expressions});
    let plain = json!({"name": "plain", "nodeSelector": {"location": "beijing"}});
    [ke, plain].map(|cluster| serde_json::from_value(cluster).unwrap()).into()
}

fn put_node(host: &FakeHost, name: &str, labels: &Json) {
    host.put(&format!("/api/v1/nodes/{name}"), json!({"metadata": {"name": name, "labels": labels}}));
}

/// The labels of the agent, by node.
fn marked(host: &FakeHost) -> BTreeMap<String, Vec<String>> {
    let state = host.lock();
    let nodes = state.objects.iter().filter_map(|(path, node)| Some((path.strip_prefix("/api/v1/nodes/")?, node)));
    let marks = nodes.map(|(name, node)| {
        let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
        let own = labels.filter_map(|(key, value)| {
            Some(format!("{}={}", key.strip_prefix(NODE_PREFIX)?, value.as_str().unwrap_or_default()))
        });
        (name.to_owned(), own.collect::<Vec<_>>())
    });
    marks.filter(|(_, marks)| !marks.is_empty()).collect()
}

fn clusters(configured: &[config::VirtualCluster]) -> Arc<VirtualClusters> {
    Arc::new(VirtualClusters::new(configured, &Arc::new(Namespaces::new([])), Reserved::default()).unwrap())
}

/// Runs the loop on this host until it has nothing to do.
async fn settle(host: &FakeHost, clusters: &Arc<VirtualClusters>) {
    let nodes = clusters.all_nodes();
    let labels = NodeLabeller::new(host.clone(), clusters, NodeLabelFailure::default());
    let run = async { tokio::join!(nodes.follow(host.follow::<Json>(nodes::PATH, "")), labels.run()) };
    assert!(timeout(Duration::from_secs(1), run).await.is_err(), "the loops run forever");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_match_have_the_label() {
    let host = FakeHost::new();
    put_node(&host, "b1", &json!({"location": "beijing", "tier": "edge"}));
    put_node(&host, "b2", &json!({"location": "beijing", "tier": "test"}));
    put_node(&host, "h1", &json!({"location": "hangzhou", "tier": "edge"}));
    put_node(&host, "s1", &json!({"location": "shanghai"}));
    // Somebody has written another value.
    put_node(&host, "h2", &json!({"location": "hangzhou", "atoll.node-restriction.kubernetes.io/ke": "x"}));
    // Of a virtual cluster that this agent does not serve, and of one that has no expressions.
    let others = json!({"location": "hangzhou", "atoll.node-restriction.kubernetes.io/other": "true",
        "atoll.node-restriction.kubernetes.io/plain": "true"});
    put_node(&host, "o1", &others);
    let expressions = json!([
        {"key": "location", "operator": "In", "values": ["beijing", "hangzhou"]},
        {"key": "tier", "operator": "NotIn", "values": ["test"]},
    ]);
    let clusters = clusters(&configured(&json!({}), &expressions));
    settle(&host, &clusters).await;
    let expect = [
        ("b1", vec!["ke=true"]),
        ("h1", vec!["ke=true"]),
        ("h2", vec!["ke=true"]),
        // Nobody must find the label of `plain` on a node that it does not have.
        ("o1", vec!["ke=true", "other=true"]),
    ];
    let expect: BTreeMap<_, Vec<_>> =
        expect.map(|(name, marks)| (name.to_owned(), marks.into_iter().map(str::to_owned).collect())).into();
    assert_eq!(marked(&host), expect);

    // Exactly these are the nodes of the virtual cluster.
    let ke = clusters.get(&"ke".parse().unwrap()).unwrap();
    assert_eq!(
        &*ke.node_selector.text,
        "atoll.node-restriction.kubernetes.io/ke=true,location in (beijing,hangzhou),tier notin (test)"
    );
    assert_eq!(ke.count_nodes(), 4);

    // A node that no longer matches.
    host.edit("/api/v1/nodes/b1", |node| node["metadata"]["labels"]["tier"] = "test".into());
    settle(&host, &clusters).await;
    assert!(!marked(&host).contains_key("b1"));
}

#[tokio::test(start_paused = true)]
async fn labels_stay_without_expressions_where_they_are_right() {
    let host = FakeHost::new();
    put_node(&host, "b1", &json!({"location": "beijing"}));
    put_node(&host, "b2", &json!({"location": "beijing"}));
    let exists = json!([{"key": "location", "operator": "Exists"}]);
    let clusters = clusters(&configured(&json!({"location": "beijing"}), &exists));
    settle(&host, &clusters).await;
    assert_eq!(marked(&host).len(), 2);
    clusters.exchange(clusters.read(&configured(&json!({"location": "beijing"}), &json!([]))).unwrap());
    host.edit("/api/v1/nodes/b2", |node| node["metadata"]["labels"]["location"] = "hangzhou".into());
    put_node(&host, "b3", &json!({"location": "beijing"}));
    settle(&host, &clusters).await;
    assert_eq!(marked(&host).into_keys().collect::<Vec<_>>(), ["b1"]);
    // The label of a virtual cluster that nobody serves stays with its pods.
    clusters.exchange(ByName::new());
    host.edit("/api/v1/nodes/b1", |node| node["metadata"]["labels"]["location"] = "hangzhou".into());
    settle(&host, &clusters).await;
    assert_eq!(marked(&host).into_keys().collect::<Vec<_>>(), ["b1"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_configuration_is_noticed() {
    let host = FakeHost::new();
    put_node(&host, "b1", &json!({"location": "beijing"}));
    let clusters = clusters(&configured(&json!({"location": "hangzhou"}), &json!([])));
    let exchange = async {
        sleep(Duration::from_millis(500)).await;
        let exists = json!([{"key": "location", "operator": "Exists"}]);
        clusters.exchange(clusters.read(&configured(&json!({}), &exists)).unwrap());
        host.until(|state| state.objects["/api/v1/nodes/b1"]["metadata"]["labels"].as_object().unwrap().len() == 2)
            .await;
    };
    tokio::select! {
        () = settle(&host, &clusters) => panic!("the label is missing"),
        () = exchange => {}
    }
}

#[tokio::test(start_paused = true)]
async fn the_label_of_another_writer_is_written_less_and_less_often() {
    let host = FakeHost::new();
    put_node(&host, "b1", &json!({"location": "beijing"}));
    let path = "/api/v1/nodes/b1";
    let clusters = clusters(&configured(&json!({}), &json!([{"key": "location", "operator": "Exists"}])));
    let (nodes, failure) = (clusters.all_nodes(), NodeLabelFailure::default());
    let labeller = NodeLabeller::new(host.clone(), &clusters, failure.clone());
    let (mut writes, label) = (0_u32, "atoll.node-restriction.kubernetes.io/ke");
    let other = async {
        loop {
            host.until(|state| !state.objects[path]["metadata"]["labels"][label].is_null()).await;
            writes += 1;
            // It takes a moment until the other writer sees it.
            sleep(Duration::from_millis(10)).await;
            host.edit(path, |node| _ = node["metadata"]["labels"].as_object_mut().unwrap().remove(label));
        }
    };
    tokio::select! {
        () = nodes.follow(host.follow::<Json>(nodes::PATH, "")) => {}
        () = labeller.run() => {}
        () = other => {}
        () = sleep(Duration::from_secs(300)) => {}
    }
    assert!((5..=11).contains(&writes), "{writes}");
    let failure = failure.get().unwrap();
    assert!(
        failure.contains("something else changes the label atoll.node-restriction.kubernetes.io/ke of node b1"),
        "{failure}"
    );

    // Without the other writer, everything is right again.
    settle(&host, &clusters).await;
    assert_eq!(marked(&host).len(), 1);
}
