use super::*;

fn member() -> Member {
    Member {
        name: "ke-beijing".parse().unwrap(),
        kept_by: Some("cloud".to_owned()),
        api_endpoint: "https://ke-beijing.atoll.internal:443".to_owned(),
        proxy_url: Some("http://10.0.0.1:8090".to_owned()),
        proxy_header: BTreeMap::new(),
        labels: BTreeMap::from([("tier".to_owned(), "edge".to_owned())]),
        provider: None,
        region: Some("north".to_owned()),
        zones: vec!["a".to_owned(), "b".to_owned()],
    }
}

#[test]
fn a_cluster_says_what_is_configured_and_nothing_else() {
    let cluster = member().cluster("1-2-3");
    let expect = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "ke-beijing", "labels": {"atoll.dev/kept-by": "cloud", "tier": "edge"}},
        "spec": {
            "syncMode": "Push",
            "id": "1-2-3",
            "apiEndpoint": "https://ke-beijing.atoll.internal:443",
            "proxyURL": "http://10.0.0.1:8090",
            "region": "north",
            "zones": ["a", "b"],
            "secretRef": {"namespace": "karmada-cluster", "name": "ke-beijing"},
            "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "ke-beijing-impersonator"},
        },
    });
    assert_eq!(cluster, expect);
    assert!(covers(&cluster, &member().kept("1-2-3")), "what is empty is left out by Go");
    let direct = Member { proxy_url: None, ..member() };
    assert!(!covers(&cluster, &direct.kept("1-2-3")), "the proxy has to go");
    assert!(covers(&cluster, &member().least("1-2-3")), "what is created first is part of it");
}

#[test]
fn secrets_are_owned_by_their_cluster_and_show_no_token() {
    let credentials = Credentials {
        id: "1".to_owned(),
        token: "t0ken".into(),
        impersonator: "other".into(),
        authority: "PEM".to_owned(),
    };
    assert!(!format!("{credentials:?}").contains("t0ken"));
    let name = member().name;
    let [impersonator, own] = secrets(&name, &credentials, Some("uid"));
    assert_eq!(impersonator["metadata"]["name"], "ke-beijing-impersonator");
    assert_eq!(impersonator["data"], json!({"token": STANDARD.encode("other")}));
    assert_eq!(own["data"], json!({"token": STANDARD.encode("t0ken"), "caBundle": STANDARD.encode("PEM")}));
    for secret in [&impersonator, &own] {
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "uid");
        assert_eq!(secret["metadata"]["labels"], json!({"karmada.io/system": "true"}));
    }
    let [_, own] = secrets(&name, &credentials, None);
    assert!(own["metadata"].get("ownerReferences").is_none());
}

#[test]
fn more_than_is_wanted_may_be_there_and_nothing_less() {
    let there = json!({"a": {"b": "x", "c": 1}, "l": ["p", "q"]});
    for wanted in [json!({"a": {"b": "x"}}), json!({"l": ["p", "q"]}), json!({"gone": "", "off": false, "none": {}})] {
        assert!(covers(&there, &wanted), "{wanted}");
    }
    for wanted in [json!({"a": {"b": "y"}}), json!({"l": ["p"]}), json!({"gone": "x"}), json!({"a": {"b": ""}})] {
        assert!(!covers(&there, &wanted), "{wanted}");
    }
}
