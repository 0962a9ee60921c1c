use std::sync::Arc;

use bytes::Bytes;
use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer as Proto;
use serde_json::{Value, json};

use crate::View;
use crate::request::{OriginalAttributes, Report, Request};
use crate::schema::{program_for, proto_program_for};
use crate::view::Filter;
use crate::view::tests::mapping;

const GROUP: &str = "authorization.k8s.io";

fn asking() -> Request {
    Request::new(mapping()).with_review_root("atoll-root-ke".parse().unwrap())
}

fn map(kind: &str, request: &Request, body: &Value) -> (Value, Report) {
    let mut out: Vec<Bytes> = Vec::new();
    let report = request.map(&program_for(GROUP, "v1", kind), &body.to_string().into(), &mut out).unwrap();
    (serde_json::from_slice(&out.concat()).unwrap(), report)
}

#[test]
fn the_original_attributes_are_restored() {
    let kind = "SubjectAccessReview";
    let review = |attributes: &Value| json!({"spec": {"resourceAttributes": attributes, "user": "eve"}});
    for (requested, host) in [
        (json!({}), json!({"namespace": "atoll-root-ke"})),
        (json!({"namespace": "edge"}), json!({"namespace": "edge-ke"})),
        // The namespace does not exist, has another owner, or has an invalid name.
        (json!({"namespace": "unheard"}), json!({"namespace": "atoll-root-ke"})),
        (json!({"namespace": "atoll-root"}), json!({"namespace": "atoll-root-ke"})),
        (json!({"namespace": "*"}), json!({"namespace": "atoll-root-ke"})),
        (json!({"namespace": "a\"b", "verb": "get"}), json!({"namespace": "atoll-root-ke", "verb": "get"})),
        (
            json!({"resource": "namespaces", "name": "new"}),
            json!({"resource": "namespaces", "name": "new-ke", "namespace": "atoll-root-ke"}),
        ),
        (
            json!({"resource": "namespaces", "name": "Ä\"", "namespace": "edge"}),
            json!({"resource": "namespaces", "name": "host:Ä\"", "namespace": "edge-ke"}),
        ),
        (
            json!({"resource": "pods", "name": "edge"}),
            json!({"resource": "pods", "name": "edge", "namespace": "atoll-root-ke"}),
        ),
    ] {
        let (mut mapped, report) = map(kind, &asking(), &review(&requested));
        assert_eq!(mapped["spec"]["resourceAttributes"], host, "{requested}");
        let owned = |named: bool| {
            let attributes = if named { json!({"f:namespace": {}, "f:verb": {}}) } else { json!({"f:verb": {}}) };
            json!([{"fieldsV1": {"f:spec": {"f:resourceAttributes": attributes}}}])
        };
        mapped["metadata"] = json!({"managedFields": owned(true)});
        let view = View::new(mapping()).with_original_attributes(report.about);
        let mut out: Vec<Bytes> = Vec::new();
        let program = program_for(GROUP, "v1", kind);
        view.object(&program, Filter::Everything, &mapped.to_string().into(), &mut out).unwrap();
        let mut expected = review(&requested);
        expected["metadata"] = json!({"managedFields": owned(requested.get("namespace").is_some())});
        assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), expected);
    }
}

#[test]
fn groups_are_added_to_a_review() {
    let request = asking().with_review_groups(Arc::from(["system:authenticated".to_owned()]));
    let body = |groups: &Value| json!({"spec": {"groups": groups}});
    let (mapped, _) = map("SubjectAccessReview", &request, &body(&json!(["dev", "system:authenticated"])));
    let groups = json!(["system:authenticated", "vc:ke:dev", "vc:ke:system:authenticated"]);
    assert_eq!(mapped, body(&groups));
    for none in [json!([]), json!(null)] {
        assert_eq!(map("SubjectAccessReview", &request, &body(&none)).0, body(&none));
    }
}

#[test]
fn protobuf_is_mapped_like_json() {
    let message = |fields: &[(u32, &[u8])]| {
        let mut message = Proto::new();
        for (number, bytes) in fields {
            message.bytes(*number, bytes);
        }
        message.into_bytes()
    };
    let review = |attributes: &[(u32, &[u8])], groups: &[&[u8]]| {
        let mut spec = vec![(1, message(attributes))];
        spec.extend(groups.iter().map(|group| (4, group.to_vec())));
        let spec: Vec<_> = spec.iter().map(|(number, bytes)| (*number, &**bytes)).collect();
        let raw = message(&[(2, &message(&spec))]);
        Bytes::from(Envelope { raw: &raw, ..Envelope::default() }.encode())
    };
    let request = asking().with_review_groups(Arc::from(["system:authenticated".to_owned()]));
    let map = |body: &Bytes| {
        let program = proto_program_for(GROUP, "v1", "SubjectAccessReview").unwrap();
        let mut out: Vec<Bytes> = Vec::new();
        let report = request.map_protobuf(program, body, &mut out).unwrap();
        (Bytes::from(out.concat()), report.about)
    };
    let (mapped, about) = map(&review(&[(1, b"unheard"), (5, b"namespaces"), (7, b"*")], &[b"dev"]));
    let host: &[(u32, &[u8])] = &[(1, b"atoll-root-ke"), (5, b"namespaces"), (7, b"host:*")];
    assert_eq!(mapped, review(host, &[b"vc:ke:dev", b"system:authenticated"]));
    assert_eq!(about, OriginalAttributes { namespace: Some("unheard".into()), name: Some("*".into()) });
    assert_eq!(map(&review(&[(2, b"get")], &[])).0, review(&[(2, b"get"), (1, b"atoll-root-ke")], &[]));
}

#[test]
fn a_rules_review_without_a_namespace_is_unchanged() {
    for (requested, host) in [("", ""), ("edge", "edge-ke"), ("unheard", "atoll-root-ke")] {
        let body = |namespace: &str| json!({"spec": {"namespace": namespace}});
        assert_eq!(map("SelfSubjectRulesReview", &asking(), &body(requested)).0, body(host));
    }
}
