use std::collections::BTreeMap;

use super::*;

const ID: &str = "1-2-3";

fn member() -> Member {
    Member {
        name: "ke-beijing".parse().unwrap(),
        kept_by: Some("cloud".to_owned()),
        api_endpoint: "https://ke-beijing.atoll.internal:443".to_owned(),
        proxy_url: None,
        proxy_header: BTreeMap::new(),
        labels: BTreeMap::new(),
        provider: None,
        region: None,
        zones: Vec::new(),
    }
}

/// As the API server shows it, with one thing changed.
fn there(pointer: &str, value: Value) -> Value {
    let mut cluster = member().cluster(ID);
    cluster["metadata"]["uid"] = "u".into();
    cluster["spec"]["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    cluster.pointer_mut(parent).unwrap()[key] = value;
    cluster
}

fn verdict(cluster: &Value) -> Found {
    compare(&member(), ID, cluster)
}

#[test]
fn a_cluster_with_our_id_is_ours_whoever_joined_it() {
    let ours = |is_current| Found::Ours { uid: "u".to_owned(), is_current };
    assert_eq!(verdict(&there("/metadata/labels/tier", "edge".into())), ours(true));
    assert_eq!(verdict(&there("/spec/proxyURL", "http://old:1".into())), ours(false));
    // By karmadactl: no label of ours.
    assert_eq!(verdict(&there("/metadata/labels", json!({"tier": "edge"}))), ours(false));
    assert_eq!(verdict(&there("/metadata/labels", Value::Null)), ours(false));
}

#[test]
fn conflicts_are_distinguished() {
    let conflict = |cluster: &Value| match verdict(cluster) {
        Found::Conflict(conflict) => conflict,
        found => panic!("{found:?}"),
    };
    assert!(matches!(conflict(&there("/spec/id", "9".into())), Conflict::OtherId { theirs, .. } if theirs == "9"));
    assert!(matches!(conflict(&there("/spec/id", Value::Null)), Conflict::OtherId { .. }));
    let managed = there("/metadata/labels", json!({KEPT_BY: "another"}));
    assert!(matches!(conflict(&managed), Conflict::OtherManager { theirs, .. } if theirs == "another"));
    assert!(matches!(conflict(&there("/spec/syncMode", "Pull".into())), Conflict::Pull(_)));
    assert!(matches!(conflict(&there("/metadata/deletionTimestamp", "2026".into())), Conflict::Leaving(_)));
}

#[test]
fn a_secret_of_a_former_cluster_is_not_owned() {
    let secret = json!({"metadata": {"ownerReferences": [{"uid": "old"}]}});
    assert!(!is_owned(&secret, "new") && is_owned(&secret, "old"));
}
