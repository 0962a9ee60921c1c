use std::sync::Arc;

use bytes::Bytes;
use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer as Proto;
use serde_json::{Value, json};

use crate::mapping::{Mapping, SharedRoles};
use crate::protobuf::ObjectName;
use crate::request::{AGGREGATION_ANNOTATION, Request};
use crate::schema::{program_for, proto_program_for};
use crate::view::{Filter, ListStream, Verdict, WatchStream};
use crate::{View, view};

const GROUP: &str = "rbac.authorization.k8s.io";

fn mapping() -> Mapping {
    view::tests::mapping().with_shared_roles(Arc::new(SharedRoles::from([Bytes::from("view")])))
}

fn map(request: &Request, kind: &str, body: &str) -> Result<Value, String> {
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for(GROUP, "v1", kind);
    let mapped = request.map(&program, &Bytes::from(body.to_owned()), &mut out);
    mapped.map_err(|refusal| refusal.to_string())?;
    Ok(serde_json::from_slice(&out.concat()).unwrap_or_else(|error| panic!("{error}: {:?}", out.concat())))
}

fn show(view: &View, kind: &str, filter: Filter, host: &Value) -> (Verdict, Value) {
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for(GROUP, "v1", kind);
    let verdict = view.object(&program, filter, &Bytes::from(host.to_string()), &mut out).unwrap();
    (verdict, serde_json::from_slice(&out.concat()).unwrap_or_default())
}

fn role(name: &str) -> Value {
    json!({
        "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {
            "name": name,
            "labels": {"app": "a", "rbac.authorization.k8s.io/aggregate-to-view": "true", "kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true", "a": "b"},
        },
        "rules": [
            {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["view", "mine"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
        ],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"app": "\"a\""}}]},
    })
}

#[test]
fn roles_have_no_effect_on_the_host_and_are_restored() {
    let host = map(&Request::new(mapping()), "clusterroles", &role("mine").to_string()).unwrap();
    assert_eq!(host["metadata"]["name"], "vc:ke:mine");
    let expected = json!({
        "atoll.dev/virtual-cluster": "ke",
        "parked.atoll.dev/app": "a",
        "rbac.authorization.k8s.io.parked.atoll.dev/aggregate-to-view": "true",
        "kubernetes.io.parked.atoll.dev/bootstrapping": "rbac-defaults",
    });
    assert_eq!(host["metadata"]["labels"], expected);
    assert_eq!(host["rules"][0]["resourceNames"], json!(["view", "vc:ke:mine"]));
    assert!(host.get("aggregationRule").is_none());
    let parked = host["metadata"]["annotations"][AGGREGATION_ANNOTATION].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(parked).unwrap(), role("")["aggregationRule"]);
    let keys = host["metadata"]["annotations"].as_object().unwrap();
    assert!(!keys.contains_key("rbac.authorization.kubernetes.io/autoupdate") && keys["a"] == "b");

    assert_eq!(show(&View::new(mapping()), "clusterroles", Filter::ByRole, &host), (Verdict::Shown, role("mine")));
}

#[test]
fn missing_parts_of_a_role_are_added() {
    let label = json!({"atoll.dev/virtual-cluster": "ke"});
    for (body, host) in [
        (r#"{"metadata":{"name":"a"}}"#, json!({"metadata": {"name": "vc:ke:a", "labels": label}})),
        (r#"{"metadata":{"name":"a","labels":{}}}"#, json!({"metadata": {"name": "vc:ke:a", "labels": label}})),
        (r#"{"metadata":{"labels":null}}"#, json!({"metadata": {"labels": label}})),
        (
            r#"{"aggregationRule":{},"metadata":{}}"#,
            json!({"metadata": {"labels": label, "annotations": {AGGREGATION_ANNOTATION: "{}"}}}),
        ),
        (
            r#"{"metadata":{"annotations":null},"aggregationRule":{}}"#,
            json!({"metadata": {"labels": label, "annotations": {AGGREGATION_ANNOTATION: "{}"}}}),
        ),
        (r#"{"metadata":{},"aggregationRule":null}"#, json!({"metadata": {"labels": label}})),
    ] {
        assert_eq!(map(&Request::new(mapping()), "clusterroles", body), Ok(host), "{body}");
    }
    for refused in [
        r#"{"metadata":{"labels":{"atoll.dev/virtual-cluster":"hz"}}}"#,
        r#"{"metadata":{"annotations":{"atoll.dev/aggregation-rule":"{}"}}}"#,
        r#"{"metadata":{"name":"host:a"}}"#,
        r#"{"metadata":{"name":"a"},"metadata":{"name":"b"}}"#,
        r#"{"aggregationRule":{},"aggregationRule":{}}"#,
        r#"{"rules":[{"apiGroups":["*"],"resources":["clusterroles","pods"],"resourceNames":["a"]}]}"#,
    ] {
        assert!(map(&Request::new(mapping()), "clusterroles", refused).is_err(), "{refused}");
    }
}

#[test]
fn a_merge_patch_of_a_role_gets_no_other_fields() {
    let patch = |body: &str| map(&Request::new(mapping()).partial(), "clusterroles", body).unwrap();
    assert_eq!(
        patch(r#"{"metadata":{"labels":{"a":null}}}"#),
        json!({"metadata": {"labels": {"parked.atoll.dev/a": null}}})
    );
    assert_eq!(
        patch(r#"{"metadata":{"labels":{}},"aggregationRule":null}"#),
        json!({"metadata": {"labels": {}, "annotations": {AGGREGATION_ANNOTATION: null}}})
    );
    // Without metadata, there are no annotations to which one could be added.
    assert_eq!(
        patch(r#"{"aggregationRule":{}}"#),
        json!({"metadata": {"annotations": {AGGREGATION_ANNOTATION: "{}"}}})
    );
}

#[test]
fn name_and_label_determine_the_owner_of_a_role() {
    let view = View::new(mapping());
    let shown = |name: &str, cluster: &str| {
        let host = json!({"metadata": {"name": name, "labels": {"atoll.dev/virtual-cluster": cluster}}, "rules": null});
        let (verdict, shown) = show(&view, "clusterroles", Filter::ByRole, &host);
        (verdict == Verdict::Shown).then(|| shown["metadata"]["name"].as_str().unwrap().to_owned())
    };
    assert_eq!(shown("vc:ke:a", "ke").as_deref(), Some("a"));
    assert_eq!(shown("view", "").as_deref(), Some("view"));
    for (name, cluster) in [("vc:ke:a", "hz"), ("vc:hz:a", "hz"), ("vc:hz:a", "ke"), ("operators", "ke")] {
        assert_eq!(shown(name, cluster), None, "{name} {cluster}");
    }
    assert_eq!(show(&view, "clusterroles", Filter::ByRole, &json!({"rules": null})).0, Verdict::Foreign);
}

#[test]
fn roles_are_selected_by_the_labels_that_clients_know() {
    let view = || View::new(mapping()).with_selector("a=b".parse().unwrap());
    let own = |label: &str| json!({"metadata": {"name": "vc:ke:x", "labels": {"atoll.dev/virtual-cluster": "ke", label: "b"}}});
    let shared = |label: &str| json!({"metadata": {"name": "view", "labels": {label: "b"}}});
    let verdict = |host: &Value| show(&view(), "clusterroles", Filter::ByRole, host).0;
    assert_eq!(
        (verdict(&own("parked.atoll.dev/a")), verdict(&own("parked.atoll.dev/c"))),
        (Verdict::Shown, Verdict::Unselected)
    );
    assert_eq!((verdict(&shared("a")), verdict(&shared("b"))), (Verdict::Shown, Verdict::Unselected));

    let mut watch = WatchStream::new(view(), program_for(GROUP, "v1", "clusterroles"), Filter::ByRole);
    let mut told = |event: &str, host: &Value| {
        let mut out: Vec<Bytes> = Vec::new();
        watch.push(&Bytes::from(json!({"object": host, "type": event}).to_string() + "\n"), &mut out).unwrap();
        serde_json::from_slice::<Value>(&out.concat()).map(|frame| frame["type"].as_str().unwrap().to_owned()).ok()
    };
    assert_eq!(told("MODIFIED", &own("parked.atoll.dev/a")).as_deref(), Some("MODIFIED"));
    assert_eq!(told("MODIFIED", &own("parked.atoll.dev/c")).as_deref(), Some("DELETED"));
    assert_eq!((told("ADDED", &own("parked.atoll.dev/c")), told("DELETED", &own("parked.atoll.dev/c"))), (None, None));
}

#[test]
fn a_cluster_role_binding_is_a_role_binding_of_the_host() {
    let binding = |kind: &str, role: &str, user: &str| {
        json!({
            "kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": user}],
        })
    };
    for role in ["mine", "view"] {
        let client = binding("ClusterRoleBinding", role, "eve");
        let mut host = map(&Request::new(mapping()), "clusterrolebindings", &client.to_string()).unwrap();
        let host_role = if role == "view" { "view" } else { "vc:ke:mine" };
        let mut expected = binding("RoleBinding", host_role, "vc:ke:eve");
        expected["metadata"]["labels"] = json!({"atoll.dev/virtual-cluster": "ke"});
        assert_eq!(host, expected);
        host["metadata"]["namespace"] = json!("atoll-root-ke");
        host["metadata"]["labels"]["atoll.dev/protected"] = json!("true");
        let shown = show(&View::new(mapping()), "clusterrolebindings", Filter::Everything, &host);
        assert_eq!(shown, (Verdict::Shown, client));
    }
    let local = json!({"roleRef": {"kind": "Role", "name": "mine"}});
    assert_eq!(map(&Request::new(mapping()), "rolebindings", &local.to_string()), Ok(local));
    for other in ["RoleBinding", "Pod"] {
        assert!(map(&Request::new(mapping()), "clusterrolebindings", &binding(other, "a", "b").to_string()).is_err());
    }
    // No client can write or remove the label.
    let labels = |labels: Value| json!({"metadata": {"labels": labels}}).to_string();
    for (given, expected) in [
        (json!({"a": "b"}), json!({"a": "b", "atoll.dev/virtual-cluster": "ke"})),
        (json!({}), json!({"atoll.dev/virtual-cluster": "ke"})),
        (Value::Null, json!({"atoll.dev/virtual-cluster": "ke"})),
    ] {
        let mapped = map(&Request::new(mapping()), "clusterrolebindings", &labels(given)).unwrap();
        assert_eq!(mapped["metadata"]["labels"], expected);
    }
    for form in [Request::new(mapping()), Request::new(mapping()).partial()] {
        let own = labels(json!({"atoll.dev/virtual-cluster": null}));
        assert!(map(&form, "clusterrolebindings", &own).is_err());
    }
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for(GROUP, "v1", "clusterrolebindings");
    let cleared = labels(Value::Null);
    let report = Request::new(mapping()).partial().map(&program, &cleared.into(), &mut out).unwrap();
    assert!(report.removes_guard);
    let foreign = json!({"roleRef": {"kind": "ClusterRole", "name": "host:a"}});
    assert!(map(&Request::new(mapping()), "rolebindings", &foreign.to_string()).is_err());
}

#[test]
fn lists_and_bookmarks_are_of_cluster_role_bindings() {
    let program = || program_for(GROUP, "v1", "clusterrolebindings");
    let list =
        r#"{"kind":"RoleBindingList","metadata":{},"items":[{"metadata":{"name":"b","namespace":"atoll-root-ke"}}]}"#;
    let mut out: Vec<Bytes> = Vec::new();
    let mut stream = ListStream::new(View::new(mapping()), program(), Filter::Everything);
    stream.push(&Bytes::from(list), &mut out).unwrap();
    stream.finish().unwrap();
    let expected = r#"{"kind":"ClusterRoleBindingList","metadata":{},"items":[{"metadata":{"name":"b"}}]}"#;
    assert_eq!(String::from_utf8(out.concat()).unwrap(), expected);

    let mut watch =
        WatchStream::new(View::new(mapping()), program(), Filter::Everything).beginning_with(view::Beginning::Changes);
    let frame = json!({"type": "ADDED", "object": {"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "b", "resourceVersion": "7"}}});
    watch.push(&Bytes::from(frame.to_string() + "\n"), &mut Vec::<Bytes>::new()).unwrap();
    let bookmark: Value = serde_json::from_slice(&watch.bookmark().unwrap()).unwrap();
    assert_eq!(bookmark["object"]["kind"], "ClusterRoleBinding");
}

/// A message of fields that contain bytes.
fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Proto::new();
    for (number, bytes) in fields {
        message.bytes(*number, bytes);
    }
    message.into_bytes()
}

fn map_protobuf(kind: &str, object: &[u8]) -> Vec<u8> {
    let body = Envelope { kind, api_version: "rbac.authorization.k8s.io/v1", raw: object, ..Envelope::default() };
    let program = proto_program_for(GROUP, "v1", kind).unwrap();
    let mut out: Vec<Bytes> = Vec::new();
    Request::new(mapping()).map_protobuf(program, &body.encode().into(), &mut out).unwrap();
    out.concat()
}

#[test]
fn roles_and_bindings_are_mapped_in_protobuf_too() {
    let label = message(&[(1, b"app"), (2, b"a")]);
    let requirement = message(&[(1, b"k"), (2, b"In"), (3, b"v")]);
    let selector = message(&[(1, &label), (2, &requirement)]);
    let rule = message(&[(1, b"bind"), (2, GROUP.as_bytes()), (3, b"clusterroles"), (4, b"mine")]);
    let metadata = message(&[(1, b"mine"), (11, &label)]);
    let object = message(&[(1, &metadata), (2, &rule), (3, &message(&[(1, &selector)]))]);

    let mapped = map_protobuf("ClusterRole", &object);
    assert_eq!(ObjectName::of(&mapped).unwrap().name, "vc:ke:mine");
    let parked = message(&[(1, b"parked.atoll.dev/app"), (2, b"a")]);
    let ours = message(&[(1, b"atoll.dev/virtual-cluster"), (2, b"ke")]);
    let aggregation = br#"{"clusterRoleSelectors":[{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}"#;
    let annotation = message(&[(1, AGGREGATION_ANNOTATION.as_bytes()), (2, aggregation)]);
    let metadata = message(&[(1, b"vc:ke:mine"), (11, &parked), (11, &ours), (12, &annotation)]);
    let rule = message(&[(1, b"bind"), (2, GROUP.as_bytes()), (3, b"clusterroles"), (4, b"vc:ke:mine")]);
    assert_eq!(Envelope::decode(&mapped).unwrap().raw, message(&[(1, &metadata), (2, &rule)]));

    let subject = |name: &[u8]| message(&[(1, b"User"), (3, name)]);
    let binding = |metadata: &[u8], subject: &[u8], role: &[u8]| {
        let role = message(&[(1, GROUP.as_bytes()), (2, b"ClusterRole"), (3, role)]);
        message(&[(1, metadata), (2, subject), (3, &role)])
    };
    let given = message(&[(1, b"b"), (11, &label)]);
    let mapped = map_protobuf("ClusterRoleBinding", &binding(&given, &subject(b"eve"), b"mine"));
    let envelope = Envelope::decode(&mapped).unwrap();
    assert_eq!(envelope.kind, "RoleBinding");
    let metadata = message(&[(1, b"b"), (11, &label), (11, &ours)]);
    assert_eq!(envelope.raw, binding(&metadata, &subject(b"vc:ke:eve"), b"vc:ke:mine"));
}
