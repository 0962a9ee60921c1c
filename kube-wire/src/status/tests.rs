use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::gvr::{GroupKind, GroupResource};

const PODS: GroupResource<'_> = GroupResource { group: "", resource: "pods" };
const DEPLOYMENTS: GroupResource<'_> = GroupResource { group: "apps", resource: "deployments" };
const USER: &str = "jane <j@x>";

/// The output of the constructors and serialisers of Kubernetes 1.36.3; see testdata/README.md.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Recorded {
    name: String,
    json: String,
    protobuf: String,
}

/// The same refusals as in testdata/generate.go, by name.
fn ours(name: &str) -> Status {
    let pod = GroupKind { group: "", kind: "Pod" };
    match name {
        "bad_request" => Status::bad_request("a \"quoted\" <tag> & \u{2028} \u{1} \u{8} \u{c} \n é \u{1F600}"),
        "unauthorized" => Status::unauthorized("not authorized"),
        "unauthorized_text" => Status::unauthorized("Unauthorized"),
        "forbidden_namespace" => Status::forbidden(
            Denied::Resource {
                user: USER,
                verb: "get",
                resource: PODS,
                subresource: None,
                namespace: Some("n"),
                name: Some("x"),
            },
            "reason",
        ),
        "forbidden_cluster" => Status::forbidden(
            Denied::Resource {
                user: USER,
                verb: "list",
                resource: DEPLOYMENTS,
                subresource: Some("scale"),
                namespace: None,
                name: None,
            },
            "",
        ),
        "forbidden_path" => Status::forbidden(Denied::Path { user: USER, verb: "get", path: "/metrics" }, ""),
        "forbidden_plain" => Status::forbidden_because(PODS, "x", "no"),
        "not_found" => Status::not_found(GroupResource { group: "", resource: "namespaces" }, "foo"),
        "not_found_group" => Status::not_found(DEPLOYMENTS, "q\"\té\u{200b}\u{a0}\u{7f}\u{E0001}"),
        "already_exists" => Status::already_exists(DEPLOYMENTS, "d"),
        "conflict" => Status::conflict(DEPLOYMENTS, "d", "the object has been modified"),
        "gone" => Status::failure(410, Reason::Gone, "gone"),
        "expired" => Status::expired("too old resource version: 1 (2)"),
        "invalid_none" => Status::invalid(GroupKind { group: "apps", kind: "Deployment" }, "d", &[]),
        "invalid_one" => {
            let field = "spec.nodeSelector[location]";
            let error = FieldError::invalid(field, "hangzhou", "is decided by the virtual cluster");
            Status::invalid(pod, "p", &[error])
        }
        "invalid_two" => {
            let errors = [FieldError::forbidden("spec.nodeName", "no"), FieldError::required("metadata.name", "")];
            Status::invalid(pod, "p", &errors)
        }
        "method_not_allowed" => {
            let message = "patch is not supported on resources of kind \"deployments.apps\"";
            let details = Some(Details::of(DEPLOYMENTS, ""));
            Status { details, ..Status::failure(405, Reason::MethodNotAllowed, message) }
        }
        "too_many_requests" => TryAgain::TooManyRequests("slow down").after(7),
        "server_timeout" => TryAgain::ServerTimeout { resource: PODS, operation: "get" }.after(2),
        "timeout" => Status::timeout("no answer", 0),
        "internal_error" => Status::internal_error("boom"),
        "service_unavailable" => Status::service_unavailable("away"),
        "request_entity_too_large" => Status::request_entity_too_large("limit is 3145728"),
        "with_metadata" => Status {
            metadata: ListMeta {
                resource_version: "12".to_owned(),
                continue_token: "tok".to_owned(),
                remaining_item_count: Some(5),
            },
            details: Some(Details { uid: "u-1".to_owned(), ..Details::default() }),
            ..Status::expired("x")
        },
        other => panic!("no constructor for {other}"),
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn writes_the_bytes_that_kubernetes_writes() {
    let cases: Vec<Recorded> = serde_json::from_str(include_str!("../../testdata/status.json")).unwrap();
    for case in cases {
        let status = ours(&case.name);
        assert_eq!(String::from_utf8(status.to_json()).unwrap(), case.json, "{}", case.name);
        assert_eq!(status.to_protobuf(), bytes_of(&case.protobuf), "{}", case.name);
        assert_eq!(Status::from_json(case.json.as_bytes()).unwrap(), status, "{}", case.name);
        assert_eq!(Status::from_protobuf(&bytes_of(&case.protobuf)).unwrap(), status, "{}", case.name);
    }
}

#[test]
fn reads_as_go_does() {
    let text = r#"{"code":410,"apiVersion":"v1","kind":"Status","new":{},"metadata":null,"status":null,"message":null,
        "reason":"Expired","details":{"causes":null,"name":null,"new":[1]}}"#;
    let status = Status::from_json(text.as_bytes()).unwrap();
    assert_eq!((status.code, status.reason, status.outcome), (410, Reason::Expired, Outcome::Failure));
    assert_eq!(status.details, Some(Details::default()));
    let odd = Status::from_json(br#"{"kind":"Status","apiVersion":"v1","code":-5,"reason":"Tired"}"#).unwrap();
    assert_eq!((odd.code, odd.reason.as_str()), (0, "Tired"));
    assert!(matches!(Status::from_json(br#"{"kind":"Pod","apiVersion":"v1"}"#), Err(NotAStatus::Kind { .. })));
    assert!(matches!(Status::from_json(b"{"), Err(NotAStatus::Json(_))));
    assert!(matches!(Status::from_json(b"[]"), Err(NotAStatus::Kind { .. } | NotAStatus::Json(_))));
    let pod = crate::envelope::Envelope { api_version: "v1", kind: "Pod", ..Default::default() }.encode();
    assert!(matches!(Status::from_protobuf(&pod), Err(NotAStatus::Kind { .. })));
    assert!(matches!(Status::from_protobuf(b"{}"), Err(NotAStatus::Protobuf(_))));
}

#[test]
fn retry_after_is_in_the_details() {
    assert_eq!(Status::service_unavailable("away").retry_after(), None);
    assert_eq!(Status::service_unavailable("away").with_retry_after(3).retry_after(), Some(3));
    assert_eq!(TryAgain::TooManyRequests("x").after(u32::MAX).retry_after(), Some(i32::MAX.cast_unsigned()));
}

#[test]
fn repeated_field_errors_are_reported_once() {
    let error = FieldError::forbidden("spec.nodeName", "no");
    let status = Status::invalid(GroupKind { group: "", kind: "Pod" }, "p", &[error.clone(), error]);
    assert_eq!(status.message, "Pod \"p\" is invalid: spec.nodeName: Forbidden: no");
    assert_eq!(status.details.unwrap().causes.len(), 2);
    // The maximum number that a body can contain. Comparing all pairs would take minutes.
    let errors: Vec<_> = (0..100_000).map(|number| FieldError::required(format!("subjects[{number}]"), "")).collect();
    let status = Status::invalid(GroupKind { group: "", kind: "Pod" }, "p", &errors);
    assert!(status.message.ends_with(", subjects[99999]: Required value]"));
}

proptest! {
    #[test]
    fn json_has_an_inverse(
        message: String,
        reason in "[A-Za-z]{0,8}",
        code in 0_u16..1000,
        details in prop::option::of((any::<[String; 4]>(), any::<i32>(), prop::collection::vec(any::<[String; 2]>(), 0..3))),
        continue_token: String,
    ) {
        let details = details.map(|([name, group, kind, uid], retry_after_seconds, causes)| Details {
            name, group, kind, uid, retry_after_seconds,
            causes: causes.into_iter().map(|[message, field]| Cause { message, field, ..Cause::default() }).collect(),
        });
        let metadata = ListMeta { continue_token, ..ListMeta::default() };
        let status = Status { metadata, details, code, message, reason: reason.into(), outcome: Outcome::Success };
        prop_assert_eq!(Status::from_json(&status.to_json()).unwrap(), status);
    }

    #[test]
    fn no_input_panics(bytes: Vec<u8>) {
        let _ = Status::from_json(&bytes);
    }
}
