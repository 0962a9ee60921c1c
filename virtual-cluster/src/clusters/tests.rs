use std::collections::BTreeMap;

use rewrite::VirtualNamespace;
use serde_json::json;

use super::*;

fn configured(name: &str, labels: &[(&str, &str)]) -> config::VirtualCluster {
    config::VirtualCluster {
        name: name.parse().unwrap(),
        node_selector: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect::<BTreeMap<_, _>>(),
        node_expressions: Vec::new(),
        node_group: None,
        tolerations: vec![json!({"key": "edge", "operator": "Exists"})],
        pod_security: config::PodSecurity::default(),
        host_tokens: None,
        external_ips: vec!["203.0.113.0/24".to_owned()],
        shares: config::Shares::default(),
        karmada: None,
    }
}

#[test]
fn the_configuration_becomes_clusters() {
    let namespaces = Arc::new(Namespaces::new([]));
    let clusters = [configured("ke-beijing", &[("zone", "b"), ("location", "beijing")])];
    let clusters = VirtualClusters::new(&clusters, &namespaces, Reserved::default()).unwrap();
    let cluster = clusters.get(&"ke-beijing".parse().unwrap()).unwrap();
    assert_eq!(&*cluster.node_selector.text, "location=beijing,zone=b");
    assert_eq!(cluster.root.as_str(), "atoll-root-ke-beijing");
    assert!(!cluster.guard.is_empty());
    let annotations: Vec<_> = cluster.annotations.entries().map(|(_, value)| value).collect();
    assert_eq!(annotations[..2], ["location=beijing,zone=b", "edge:Exists:::"]);
    assert!(annotations[2].contains("scheduler.alpha.kubernetes.io/*,admission.gatekeeper.sh/*"));
    assert_eq!(annotations[3..], ["203.0.113.0/24"]);
    let host = cluster.mapping().host(&VirtualNamespace::new("edge").unwrap()).unwrap();
    assert_eq!(host.as_str(), "edge-ke-beijing");
    assert!(clusters.get(&"ke-hangzhou".parse().unwrap()).is_none());
}

#[test]
fn a_label_that_no_node_can_have_is_refused() {
    let namespaces = Arc::new(Namespaces::new([]));
    let clusters = [configured("ke-beijing", &[("location", "bei jing")])];
    let error = VirtualClusters::new(&clusters, &namespaces, Reserved::default()).unwrap_err();
    assert!(matches!(error.reason, ClusterReason::NodeSelector(_)));
}

#[test]
fn an_address_range_is_refused_by_its_position() {
    let namespaces = Arc::new(Namespaces::new([]));
    let mut cluster = configured("ke-beijing", &[("location", "beijing")]);
    cluster.external_ips.push("10.0.0.1/8".to_owned());
    let error = VirtualClusters::new(&[cluster], &namespaces, Reserved::default()).unwrap_err();
    assert!(matches!(error.reason, ClusterReason::ExternalIp { index: 1, .. }));
}

#[test]
fn a_toleration_is_refused_by_its_position() {
    let namespaces = Arc::new(Namespaces::new([]));
    let mut cluster = configured("ke-beijing", &[("location", "beijing")]);
    cluster.tolerations.push(json!({"kee": "edge"}));
    let error = VirtualClusters::new(&[cluster], &namespaces, Reserved::default()).unwrap_err();
    assert!(matches!(error.reason, ClusterReason::Toleration { index: 1, .. }));
}

#[test]
fn cached_callers_survive_a_reload_and_are_dropped_with_the_cluster() {
    let namespaces = Arc::new(Namespaces::new([]));
    let configured = [configured("ke-beijing", &[("location", "beijing")])];
    let clusters = VirtualClusters::new(&configured, &namespaces, Reserved::default()).unwrap();
    let callers = || Arc::downgrade(&clusters.get(&configured[0].name).unwrap().lasting.callers);
    let first = callers();
    clusters.exchange(clusters.read(&configured).unwrap());
    assert!(first.ptr_eq(&callers()));
    clusters.exchange(clusters.read([]).unwrap());
    assert!(first.upgrade().is_none());
    clusters.exchange(clusters.read(&configured).unwrap());
    assert!(!first.ptr_eq(&callers()));
}
