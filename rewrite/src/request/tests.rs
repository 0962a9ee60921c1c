use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::guard::Toleration;
use crate::json::Defect;
use crate::pod_security::Level;
use crate::schema::program_for;
use crate::view::tests::{guard, mapping, view};
use crate::view::{Filter, Verdict};

mod renamed;

fn request() -> Request {
    Request::new(mapping()).in_namespace("edge".parse().unwrap()).with_guard(guard())
}

#[track_caller]
fn map_text(request: &Request, group: &str, kind: &str, body: &str) -> Result<(String, Report), Refusal> {
    let mut out: Vec<Bytes> = Vec::new();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let report = request.map(&program_for(group, "v1", kind), &body, &mut out)?;
    Ok((String::from_utf8(out.concat()).unwrap(), report))
}

#[track_caller]
fn map(group: &str, kind: &str, body: &Value) -> Value {
    serde_json::from_str(&map_text(&request(), group, kind, &body.to_string()).unwrap().0).unwrap()
}

#[track_caller]
fn refused(group: &str, kind: &str, body: &Value) -> String {
    map_text(&request(), group, kind, &body.to_string()).unwrap_err().to_string()
}

/// Checks that the view of the mapped body equals what the client sent.
#[track_caller]
fn is_mapped_back(group: &str, kind: &str, body: &Value) {
    let host = Bytes::from(map(group, kind, body).to_string());
    let mut out: Vec<Bytes> = Vec::new();
    let verdict = view().object(&program_for(group, "v1", kind), Filter::Everything, &host, &mut out);
    assert_eq!(verdict, Ok(Verdict::Shown));
    assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), *body);
}

#[test]
fn the_namespace_must_match_the_request() {
    let pod = |namespace: Value| json!({"metadata": {"namespace": namespace}});
    assert_eq!(map("", "configmaps", &pod(json!("edge"))), pod(json!("edge-ke")));
    for same in [json!(""), json!(null)] {
        assert_eq!(map("", "configmaps", &pod(same.clone())), pod(same));
    }
    let mismatch =
        "metadata.namespace: the namespace of the provided object does not match the namespace sent on the request";
    for other in ["default", "edge-ke", "kube-system"] {
        assert_eq!(refused("", "configmaps", &pod(json!(other))), mismatch);
    }
    assert_eq!(refused("", "configmaps", &pod(json!(["edge"]))), "metadata.namespace: must be a string");
    let cluster_scoped = Request::new(mapping());
    let cleared = map_text(&cluster_scoped, "", "nodes", &pod(json!("edge-hz")).to_string()).unwrap().0;
    assert_eq!(cleared, pod(json!("")).to_string());
}

#[test]
fn duplicate_fields_are_refused() {
    for (kind, body) in [
        ("configmaps", r#"{"metadata":{"namespace":"edge","namespace":"edge-hz"}}"#),
        ("configmaps", r#"{"metadata":{"n\u0061mespace":"edge","namespace":"edge-hz"}}"#),
        ("configmaps", r#"{"metadata":{},"metadata":{"namespace":"edge-hz"}}"#),
        ("pods", r#"{"spec":{"nodeSelector":{"location":"beijing","location":"hangzhou"}}}"#),
        ("pods", r#"{"spec":{"nodeSelector":{},"nodeSelector":{"location":"hangzhou"}}}"#),
        ("events", r#"{"involvedObject":{"kind":"Pod","name":"edge-hz","kind":"Namespace"}}"#),
    ] {
        let refusal = map_text(&request(), "", kind, body).unwrap_err();
        assert_eq!(refusal.reason, Reason::Duplicate, "{body}");
    }
    // Values that are not mapped are validated by the host.
    assert!(map_text(&request(), "", "configmaps", r#"{"data":{"a":"1","a":"2"}}"#).is_ok());
}

#[test]
fn a_missing_guard_is_added() {
    let tolerations = json!([{"key": "edge", "operator": "Exists"}]);
    for spec in ["{}", r#"{"nodeSelector":null,"tolerations":null}"#, r#"{"nodeSelector":{},"tolerations":[]}"#] {
        let body = json!({"spec": {"template": {"spec": serde_json::from_str::<Value>(spec).unwrap()}}});
        assert_eq!(
            map("apps", "deployments", &body)["spec"]["template"]["spec"],
            json!({"nodeSelector": {"location": "beijing"}, "tolerations": tolerations})
        );
    }
    let whole = json!({
        "containers": [], "nodeSelector": {"disk": "ssd", "location": "beijing"},
        "tolerations": [{"key": "a"}, {"key": "edge", "operator": "Exists"}]
    });
    for spec in
        [json!({"containers": [], "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a"}]}), whole.clone()]
    {
        assert_eq!(map("", "pods", &json!({"spec": spec}))["spec"], whole);
    }
    let cron_job = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}}});
    is_mapped_back("batch", "cronjobs", &cron_job);
}

#[test]
fn another_value_of_a_guarded_label_is_a_conflict() {
    let refusal = refused(
        "apps",
        "deployments",
        &json!({"spec": {"template": {"spec": {"nodeSelector": {"location": "hangzhou"}}}}}),
    );
    assert_eq!(
        refusal,
        "spec.template.spec.nodeSelector[location]: Invalid value: \"hangzhou\": nodes of this cluster have \"beijing\""
    );
    assert!(refused("", "pods", &json!({"spec": {"nodeSelector": {"location": null}}})).contains("\"null\""));
    assert!(refused("", "pods", &json!({"spec": {"nodeSelector": "location"}})).contains("must be an object"));
    assert!(refused("", "pods", &json!({"spec": {"nodeSelector": {"location": 1}}})).contains("must be a string"));
}

#[test]
fn a_merge_patch_gets_no_other_fields() {
    let patch = |body: &str| map_text(&request().partial(), "", "pods", body).unwrap();
    for same in [
        "{}",
        r#"{"spec":{}}"#,
        r#"{"spec":{"nodeSelector":{"disk":"ssd"}}}"#,
        r#"{"spec":{"nodeSelector":{"location":"beijing"}}}"#,
    ] {
        assert_eq!(patch(same), (same.to_owned(), Report::default()));
    }
    for removes in [
        r#"{"spec":{"nodeSelector":null}}"#,
        r#"{"spec":{"nodeSelector":{"location":null}}}"#,
        r#"{"spec":{"tolerations":null}}"#,
    ] {
        assert!(patch(removes).1.removes_guard, "{removes}");
    }
    assert!(
        map_text(&request().partial(), "", "pods", r#"{"spec":{"nodeSelector":{"location":"hangzhou"}}}"#).is_err()
    );
}

#[test]
fn nodes_are_reported() {
    let nodes = |kind: &str, body: Value| map_text(&request(), "", kind, &body.to_string()).unwrap().1.nodes;
    assert_eq!(nodes("pods", json!({"spec": {"nodeName": "n1"}})), ["n1"]);
    assert_eq!(nodes("pods", json!({"spec": {"nodeName": ""}})), [""; 0]);
    assert_eq!(nodes("Binding", json!({"target": {"name": "n1", "kind": "Node"}})), ["n1"]);
    assert_eq!(nodes("Binding", json!({"target": {"name": "n1"}})), ["n1"]);
    let bound = |kind: &str| {
        let body = json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "n1"}}});
        map_text(&request(), "authentication.k8s.io", "TokenRequest", &body.to_string()).unwrap().1.nodes
    };
    assert_eq!(bound("Node"), ["n1"]);
    assert_eq!(bound("Pod"), [""; 0]);
}

#[test]
fn revisions_are_spelled_as_they_are_read() {
    let map = |data: Value| map_text(&request(), "apps", "controllerrevisions", &json!({"data": data}).to_string());
    let selector = |key: &str| {
        let term = json!({"topologyKey": "zone", "namespaceSelector": {key: []}});
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    };
    let pods = |key: &str, value: Value| json!({"spec": {"template": {"spec": {key: value}}}});
    for (data, path, expected) in [
        (json!({"Metadata": {}}), "data.Metadata", "metadata"),
        (json!({"metadata": {"name\u{17f}pace": "new"}}), "data.metadata[name\u{17f}pace]", "namespace"),
        (pods("NODENAME", json!("n1")), "data.spec.template.spec.NODENAME", "nodeName"),
        (
            pods("affinity", json!({"podAntiaffinity": {}})),
            "data.spec.template.spec.affinity.podAntiaffinity",
            "podAntiAffinity",
        ),
        (
            pods("affinity", selector("MatchExpressions")),
            "data.spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]\
             .namespaceSelector.MatchExpressions",
            "matchExpressions",
        ),
    ] {
        let refusal = map(data).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("{path}: must be spelled {expected:?}")), "{refusal}");
    }
    assert_eq!(map(pods("nodeName", json!("n1"))).unwrap().1.nodes, ["n1"]);
    assert!(map(json!({"metadata": {"namespace": "edge"}})).unwrap().0.contains("edge-ke"));
    // Other kinds are read as they are spelled.
    assert!(map_text(&request(), "apps", "deployments", r#"{"spec":{"Template":{}}}"#).is_ok());
}

#[test]
fn revisions_have_the_bytes_that_controllers_compare() {
    let toleration = Toleration { value: "b".to_owned(), effect: "NoSchedule".to_owned(), ..Toleration::of_key("a") };
    let guard = Guard::new([("m".to_owned(), "1".to_owned())], [toleration]);
    let request = Request::new(mapping()).with_guard(Arc::new(guard));
    let ours = r#"{"effect":"NoSchedule","key":"a","operator":"Exists","value":"b"}"#;
    for (shown, host) in [
        (r"{}", format!(r#"{{"nodeSelector":{{"m":"1"}},"tolerations":[{ours}]}}"#)),
        (r#"{"a":1}"#, format!(r#"{{"a":1,"nodeSelector":{{"m":"1"}},"tolerations":[{ours}]}}"#)),
        (r#"{"a":1,"o":2}"#, format!(r#"{{"a":1,"nodeSelector":{{"m":"1"}},"o":2,"tolerations":[{ours}]}}"#)),
        (r#"{"z":1}"#, format!(r#"{{"nodeSelector":{{"m":"1"}},"tolerations":[{ours}],"z":1}}"#)),
        (
            r#"{"nodeSelector":{"a":"2","z":"3"},"tolerations":[{"key":"c"}]}"#,
            format!(r#"{{"nodeSelector":{{"a":"2","m":"1","z":"3"}},"tolerations":[{{"key":"c"}},{ours}]}}"#),
        ),
    ] {
        let revision = |pod: &str| format!(r#"{{"data":{{"spec":{{"template":{{"spec":{pod}}}}}}}}}"#);
        let mapped = map_text(&request, "apps", "controllerrevisions", &revision(shown)).unwrap().0;
        assert_eq!(mapped, revision(&host), "{shown}");
    }
}

#[test]
fn selectors_are_confined() {
    let policy = |selector: Value| json!({"spec": {"ingress": [{"from": [{"namespaceSelector": selector}]}]}});
    let map = |selector| {
        map("networking.k8s.io", "networkpolicies", &policy(selector))["spec"]["ingress"][0]["from"][0]
            ["namespaceSelector"].clone()
    };
    let ours = json!({"key": "atoll.dev/virtual-cluster", "operator": "In", "values": ["ke"]});
    assert_eq!(map(json!({})), json!({"matchExpressions": [ours]}));
    assert_eq!(map(json!(null)), json!(null));
    for empty in [json!([]), json!(null)] {
        assert_eq!(map(json!({"matchExpressions": empty})), json!({"matchExpressions": [ours]}));
    }
    assert_eq!(
        map(json!({
            "matchLabels": {"kubernetes.io/metadata.name": "edge", "a": "edge"},
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["edge", "new"]}]
        })),
        json!({
            "matchLabels": {"kubernetes.io/metadata.name": "edge-ke", "a": "edge"},
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["edge-ke", "new-ke"]}, ours
            ]
        })
    );
    for ours in [
        json!({"matchLabels": {"atoll.dev/virtual-cluster": "hz"}}),
        json!({"matchExpressions": [{"key": "atoll.dev/namespace", "operator": "Exists"}]}),
    ] {
        assert!(refused("networking.k8s.io", "networkpolicies", &policy(ours)).contains("Forbidden"));
    }
    is_mapped_back("networking.k8s.io", "networkpolicies", &policy(json!({})));
    is_mapped_back(
        "networking.k8s.io",
        "networkpolicies",
        &policy(json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
    );
}

#[test]
fn subjects_and_reviews_are_mapped() {
    let group = "rbac.authorization.k8s.io";
    let binding = |subject: Value| json!({"subjects": [subject]});
    for (subject, host) in [
        (json!({"kind": "User", "name": "eve"}), json!({"kind": "User", "name": "vc:ke:eve"})),
        (json!({"name": "system:masters", "kind": "Group"}), json!({"name": "vc:ke:system:masters", "kind": "Group"})),
        (
            json!({"kind": "ServiceAccount", "name": "a", "namespace": "edge"}),
            json!({"kind": "ServiceAccount", "name": "a", "namespace": "edge-ke"}),
        ),
        (
            json!({"kind": "User", "name": "system:serviceaccount:new:a"}),
            json!({"kind": "User", "name": "system:serviceaccount:new-ke:a"}),
        ),
    ] {
        assert_eq!(map(group, "rolebindings", &binding(subject.clone())), binding(host));
        is_mapped_back(group, "rolebindings", &binding(subject));
    }
    for foreign in [
        json!({"kind": "Group", "name": "host:system:masters"}),
        json!({"kind": "ServiceAccount", "name": "a", "namespace": "host:kube-system"}),
        json!({"kind": "ServiceAccount", "name": "a", "namespace": "atoll-root"}),
        json!({"kind": "User", "name": "system:serviceaccount:*:a"}),
    ] {
        assert!(refused(group, "rolebindings", &binding(foreign)).starts_with("subjects[0]."));
    }
    is_mapped_back(
        "authorization.k8s.io",
        "SubjectAccessReview",
        &json!({"spec": {"user": "eve", "groups": ["a", "system:serviceaccounts:edge"], "resourceAttributes": {
            "namespace": "", "name": "edge", "resource": "namespaces"
        }}}),
    );
}

#[test]
fn a_review_without_a_namespace_is_about_the_root() {
    let ask = |attributes: &str| {
        let request = Request::new(mapping()).with_review_root("atoll-root-ke".parse().unwrap());
        let body = format!(r#"{{"spec":{{"resourceAttributes":{attributes}}}}}"#);
        let mapped = map_text(&request, "authorization.k8s.io", "SelfSubjectAccessReview", &body);
        mapped.map(|(text, _)| text["{\"spec\":{\"resourceAttributes\":".len()..text.len() - 2].to_owned())
    };
    for (attributes, host) in [
        ("{}", r#"{"namespace":"atoll-root-ke"}"#),
        (r#"{"verb":"get"}"#, r#"{"namespace":"atoll-root-ke","verb":"get"}"#),
        (r#"{"namespace":"","verb":"get"}"#, r#"{"namespace":"atoll-root-ke","verb":"get"}"#),
        (r#"{"verb":"get", "namespace": null }"#, r#"{"verb":"get", "namespace": "atoll-root-ke" }"#),
        (r#"{"namespace":"edge"}"#, r#"{"namespace":"edge-ke"}"#),
        (
            r#"{"resource":"namespaces","name":"edge"}"#,
            r#"{"namespace":"atoll-root-ke","resource":"namespaces","name":"edge-ke"}"#,
        ),
        ("null", "null"),
    ] {
        assert_eq!(ask(attributes).as_deref(), Ok(host), "{attributes}");
    }
    for twice in [r#"{"namespace":"","namespace":"edge"}"#, r#"{"namespace":"edge","namespace":""}"#] {
        assert_eq!(ask(twice).unwrap_err().reason, Reason::Duplicate, "{twice}");
    }
    assert!(ask(r#"{"namespace":1}"#).unwrap_err().to_string().ends_with("namespace: must be a string"));
}

#[test]
fn a_namespace_gets_the_labels_of_its_cluster() {
    let map = |rules: NamespaceRules, body: &Value| {
        let request = Request::new(mapping()).with_namespace_rules(Arc::new(rules));
        let result = map_text(&request, "", "namespaces", &body.to_string());
        result.map(|(text, _)| serde_json::from_str::<Value>(&text).unwrap()).map_err(|refusal| refusal.to_string())
    };
    let plain = NamespaceRules::default;
    let ours = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"});
    for labels in ["", r#","labels":null"#, r#","labels":{}"#] {
        let body: Value = serde_json::from_str(&format!(r#"{{"metadata":{{"name":"new"{labels}}}}}"#)).unwrap();
        assert_eq!(map(plain(), &body), Ok(json!({"metadata": {"name": "new-ke", "labels": ours}})));
    }
    assert_eq!(
        map(plain(), &json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "new", "a": "b"}, "name": "new"}})),
        Ok(json!({"metadata": {"name": "new-ke", "labels": {
            "kubernetes.io/metadata.name": "new-ke", "a": "b",
            "atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new"
        }}}))
    );

    let labelled = |key: &str, value: &str| json!({"metadata": {"name": "new", "labels": {key: value}}});
    let enforce = "pod-security.kubernetes.io/enforce";
    assert_eq!(map(plain(), &labelled(enforce, "privileged")).unwrap()["metadata"]["labels"][enforce], "privileged");
    let access = "resource.kubernetes.io/admin-access";
    assert_eq!(
        map(plain(), &labelled(access, "true")).unwrap_err(),
        format!("metadata.labels[{access}]: Forbidden: managed by the operator of the host cluster")
    );
    assert!(map(plain(), &labelled("atoll.dev/virtual-cluster", "hz")).is_err());
    let whitelist = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
    assert!(map(plain(), &json!({"metadata": {"annotations": {whitelist: "[]"}}})).is_err());

    let labelled_namespace = || {
        plain().for_existing([(access.to_owned(), "true".to_owned()), (enforce.to_owned(), "baseline".to_owned())], [])
    };
    for body in [labelled(access, "true"), labelled("a", "b"), json!({"metadata": {"name": "new"}})] {
        let labels = &map(labelled_namespace(), &body).unwrap()["metadata"]["labels"];
        assert_eq!((&labels[access], &labels[enforce]), (&json!("true"), &Value::Null));
    }
    assert!(map(labelled_namespace(), &labelled(access, "false")).is_err());

    // Annotations of Atoll: a new Namespace gets them, and an existing one keeps them.
    let selector = "atoll.dev/node-selector";
    let new = || plain().with_annotations([(selector, "a=b")]);
    let existing =
        || plain().for_existing([], [(selector.to_owned(), "a=b".to_owned()), ("c".to_owned(), "d".to_owned())]);
    for rules in [&new as &dyn Fn() -> NamespaceRules, &existing] {
        for annotations in [Value::Null, json!({}), json!({"e": "f"})] {
            let body = json!({"metadata": {"name": "new", "annotations": annotations}});
            let mut expected = annotations.as_object().cloned().unwrap_or_default();
            expected.insert(selector.to_owned(), json!("a=b"));
            assert_eq!(map(rules(), &body).unwrap()["metadata"]["annotations"], json!(expected));
        }
        assert!(map(rules(), &json!({"metadata": {"annotations": {selector: "a=c"}}})).is_err());
    }

    let made = |metadata: &str| {
        let request = Request::new(mapping()).with_generated_name("a-x1".parse().unwrap());
        let body = format!(r#"{{"metadata":{metadata}}}"#);
        serde_json::from_str::<Value>(&map_text(&request, "", "namespaces", &body).unwrap().0).unwrap()
    };
    let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "a-x1"});
    for metadata in
        [r#"{"generateName":"a-"}"#, r#"{"name":"","generateName":"a-"}"#, r#"{"generateName":"a-", "name": null}"#]
    {
        let host = json!({"name": "a-x1-ke", "generateName": "a-", "labels": labels});
        assert_eq!(made(metadata), json!({"metadata": host}), "{metadata}");
    }

    for bad in [json!({"generateName": "a-"}), json!({"name": "A"}), json!({"name": "atoll-root"}), json!({"name": 1})]
    {
        assert!(map(plain(), &json!({"metadata": bad})).is_err(), "{bad}");
    }
}

#[test]
fn a_node_selector_of_a_namespace_is_parked() {
    const SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
    const PARKED: &str = "scheduler.alpha.kubernetes.io.parked.atoll.dev/node-selector";
    let annotated = |annotations: Value| json!({"metadata": {"name": "edge", "annotations": annotations}});
    let map = |request: Request, body: &Value| {
        let (text, _) = map_text(&request, "", "namespaces", &body.to_string())?;
        Ok::<_, Refusal>(serde_json::from_str::<Value>(&text).unwrap()["metadata"]["annotations"].clone())
    };
    let new = || Request::new(mapping());
    for value in ["", "a=b"] {
        assert_eq!(map(new(), &annotated(json!({SELECTOR: value, "c": "d"}))), Ok(json!({PARKED: value, "c": "d"})));
    }
    assert_eq!(map(new().partial(), &annotated(json!({SELECTOR: null}))), Ok(json!({PARKED: null})));
    // As the host has it: with the selector of its operator, and that of the client.
    let live = [(SELECTOR, "a=b"), (PARKED, "c=d")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let existing = || new().with_namespace_rules(Arc::new(NamespaceRules::default().for_existing([], live.clone())));
    assert_eq!(map(existing(), &annotated(json!({SELECTOR: ""}))), Ok(json!({SELECTOR: "a=b", PARKED: ""})));
    assert_eq!(map(existing(), &annotated(json!({}))), Ok(json!({SELECTOR: "a=b"})));
    let refusal = map(new(), &annotated(json!({PARKED: "a=b"}))).unwrap_err().to_string();
    assert_eq!(
        refusal,
        format!("metadata.annotations[{PARKED}]: Forbidden: managed by the operator of the host cluster")
    );
    let twice = format!(r#"{{"metadata":{{"annotations":{{"{SELECTOR}":"","{SELECTOR}":"a=b"}}}}}}"#);
    assert!(map_text(&new(), "", "namespaces", &twice).is_err());

    let fields = |annotations: Value| json!([{"fieldsV1": {"f:metadata": {"f:annotations": annotations}}}]);
    let shown = |annotations: Value, owned: Value| {
        let mut object = annotated(annotations);
        object["metadata"]["name"] = "edge-ke".into();
        object["metadata"]["managedFields"] = fields(owned);
        let mut out: Vec<Bytes> = Vec::new();
        let body = Bytes::from(object.to_string());
        view().object(&program_for("", "v1", "namespaces"), Filter::ByName, &body, &mut out).unwrap();
        serde_json::from_slice::<Value>(&out.concat()).unwrap()["metadata"].take()
    };
    let both = shown(json!({SELECTOR: "a=b", PARKED: "c=d"}), json!({format!("f:{PARKED}"): {}}));
    assert_eq!(both["annotations"], json!({SELECTOR: "c=d"}));
    assert_eq!(both["managedFields"], fields(json!({format!("f:{SELECTOR}"): {}})));
    // And back: no manager gets the selector of the operator.
    let back = |request: Request, kind: &str| {
        let body = json!({"metadata": {"managedFields": fields(json!({format!("f:{SELECTOR}"): {}, "f:c": {}}))}});
        let mapped = map_text(&request, "", kind, &body.to_string()).unwrap().0;
        serde_json::from_str::<Value>(&mapped).unwrap()["metadata"]["managedFields"].take()
    };
    for request in [existing(), new().partial()] {
        let host = fields(json!({format!("f:{PARKED}"): {}, "f:c": {}}));
        assert_eq!(back(request, "namespaces"), host);
    }
    // A Service keeps this annotation.
    let in_edge = new().in_namespace("edge".parse().unwrap());
    assert_eq!(back(in_edge, "services"), fields(json!({format!("f:{SELECTOR}"): {}, "f:c": {}})));
    let operators = shown(json!({SELECTOR: "a=b"}), json!({".": {}, format!("f:{SELECTOR}"): {}}));
    assert_eq!(
        (operators.get("annotations"), operators["managedFields"].to_string().contains(SELECTOR)),
        (None, false)
    );
}

#[test]
fn levels_of_pod_security_are_enforced() {
    const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
    const REQUESTED: &str = "pod-security.kubernetes.io.parked.atoll.dev/enforce";
    let rules = NamespaceRules::default().enforcing(Some(Level::Baseline));
    let map = |request: Request, body: &Value| {
        let mapped = map_text(&request, "", "namespaces", &body.to_string());
        mapped.map(|(text, _)| serde_json::from_str::<Value>(&text).unwrap()["metadata"]["labels"].clone())
    };
    let ruled = |rules: &NamespaceRules| Request::new(mapping()).with_namespace_rules(Arc::new(rules.clone()));
    let labelled = |labels: Value| json!({"metadata": {"name": "new", "labels": labels}});
    let host = |enforced: &str, more: Value| {
        let mut labels = json!({
            "atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "new", "atoll.dev/pod-security": "baseline",
            ENFORCE: enforced, "pod-security.kubernetes.io/enforce-version": "latest",
        });
        labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        labels
    };
    for (requested, enforced) in [("privileged", "baseline"), ("baseline", "baseline"), ("restricted", "restricted")] {
        let body = labelled(json!({"a": "b", ENFORCE: requested}));
        let labels = host(enforced, json!({"a": "b", REQUESTED: requested}));
        assert_eq!(map(ruled(&rules), &body), Ok(labels.clone()), "{requested}");
        // And back.
        let body = Bytes::from(json!({"metadata": {"name": "edge-ke", "labels": labels}}).to_string());
        let mut out: Vec<Bytes> = Vec::new();
        let shown = view().enforcing_pod_security();
        shown.object(&program_for("", "v1", "namespaces"), Filter::ByName, &body, &mut out).unwrap();
        let shown: Value = serde_json::from_slice(&out.concat()).unwrap();
        assert_eq!(shown, json!({"metadata": {"name": "edge", "labels": {"a": "b", ENFORCE: requested}}}));
    }
    for labels in [json!({}), json!(null)] {
        assert_eq!(map(ruled(&rules), &labelled(labels)), Ok(host("baseline", json!({}))));
    }
    assert_eq!(map(ruled(&rules), &json!({"metadata": {"name": "new"}})), Ok(host("baseline", json!({}))));
    // A patch contains only the requested level. An apply repeats the enforced labels too.
    for requested in [json!("privileged"), json!(null)] {
        let patch = json!({"metadata": {"labels": {ENFORCE: requested}}});
        assert_eq!(map(ruled(&rules).partial(), &patch), Ok(json!({REQUESTED: requested})));
    }
    let live = host("restricted", json!({"mine": "1", REQUESTED: "restricted"}));
    let live = live.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()));
    let apply = rules.for_apply(live);
    assert_eq!(map(ruled(&apply), &labelled(json!({"a": "b"}))), Ok(host("restricted", json!({"a": "b"}))));

    for (labels, why) in [
        (json!({ENFORCE: "strict"}), "Invalid value: \"strict\": must be one of privileged, baseline, restricted"),
        (json!({REQUESTED: "privileged"}), "Forbidden: managed by the operator of the host cluster"),
        (json!({"atoll.dev/pod-security": "privileged"}), "Forbidden: managed by the operator of the host cluster"),
    ] {
        let key = labels.as_object().unwrap().keys().next().unwrap().clone();
        let refusal = map(ruled(&rules), &labelled(labels)).unwrap_err().to_string();
        assert_eq!(refusal, format!("metadata.labels[{key}]: {why}"));
    }
    let twice = format!(r#"{{"metadata":{{"labels":{{"{ENFORCE}":"restricted","{ENFORCE}":"privileged"}}}}}}"#);
    assert!(map_text(&ruled(&rules), "", "namespaces", &twice).is_err());

    let managed =
        |labels: Value| json!({"metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": labels}}}]}});
    let body =
        Bytes::from(managed(json!({format!("f:{ENFORCE}"): {}, format!("f:{REQUESTED}"): {}, "f:a": {}})).to_string());
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for("", "v1", "namespaces");
    view().enforcing_pod_security().object(&program, Filter::Everything, &body, &mut out).unwrap();
    let shown: Value = serde_json::from_slice(&out.concat()).unwrap();
    assert_eq!(shown, managed(json!({format!("f:{ENFORCE}"): {}, "f:a": {}})));
    let back = |request: Request| {
        let mapped = map_text(&request.partial(), "", "namespaces", &shown.to_string()).unwrap().0;
        serde_json::from_str::<Value>(&mapped).unwrap()
    };
    assert_eq!(back(ruled(&rules)), managed(json!({format!("f:{REQUESTED}"): {}, "f:a": {}})));
    assert_eq!(back(ruled(&NamespaceRules::default())), shown);
    let conflict = format!("conflict with \"one\": .metadata.labels.{REQUESTED}");
    assert_eq!(mapping().readable(&conflict).unwrap(), format!("conflict with \"one\": .metadata.labels.{ENFORCE}"));
}

#[test]
fn the_namespace_of_a_token_secret_is_mapped() {
    let request = request();
    let secret =
        r#"{"data":{"ca.crt":"UEVNCg==","namespace":"ZWRnZQ=="},"type":"kubernetes.io/service-account-token"}"#;
    // printf edge-ke | base64
    let host =
        r#"{"data":{"ca.crt":"UEVNCg==","namespace":"ZWRnZS1rZQ=="},"type":"kubernetes.io/service-account-token"}"#;
    assert_eq!(map_text(&request, "", "secrets", secret).unwrap().0, host);
    let opaque = secret.replace("kubernetes.io/service-account-token", "Opaque");
    assert_eq!(map_text(&request, "", "secrets", &opaque).unwrap().0, opaque);
}

#[test]
fn broken_bodies_are_refused_with_their_offset() {
    let refusal = map_text(&request(), "", "pods", r#"{"a":01}"#).unwrap_err();
    assert_eq!(refusal.reason, Reason::Malformed(crate::json::Malformed { offset: 6, defect: Defect::UnexpectedByte }));
    assert!(map_text(&request(), "", "pods", "{} {}").is_err());
}

proptest! {
    #[test]
    fn bodies_without_names_are_unchanged(text in crate::json::tests::json()) {
        prop_assert_eq!(map_text(&request(), "", "configmaps", &text).map(|(text, _)| text), Ok(text.clone()));
        let body = Bytes::from(text.clone());
        let mut out: Vec<Bytes> = Vec::new();
        let program = program_for("apps", "v1", "deployments");
        prop_assert_eq!(view().object(&program, Filter::Everything, &body, &mut out), Ok(Verdict::Shown));
        prop_assert_eq!(out.concat(), text.as_bytes());
    }

    #[test]
    fn no_input_panics(bytes: Vec<u8>, text in "[{}\\[\\]\":,]{0,3}(\\{\"spec\":|\\{\"metadata\":\\{\"labels\":|\\{\"nodeSelector\":)?[{}\\[\\]\":,a1n ]{0,12}") {
        for body in [Bytes::from(bytes), Bytes::from(text)] {
            for kind in ["pods", "namespaces", "secrets", "Binding"] {
                let _ = request().map(&program_for("", "v1", kind), &body, &mut Vec::new());
                let _ = view().object(&program_for("", "v1", kind), Filter::Everything, &body, &mut Vec::new());
            }
        }
    }
}
