use rewrite::guard::Toleration;
use serde_json::json;

use super::*;

const POINTER: &str = "/spec/template/spec";

/// What the agent sends if `me` applies this pod specification, and each of these managers owns these fields.
fn sent(owners: &[(&str, &str, &[&str])], spec: &Value) -> Value {
    let entry = |(manager, operation, fields): &(&str, &str, &[&str])| Entry {
        manager: (*manager).to_owned(),
        operation: (*operation).to_owned(),
        fields_v1: serde_json::from_value(json!({"f:spec": {"f:template": {"f:spec": fields
            .iter()
            .map(|field| (format!("f:{field}"), json!({})))
            .collect::<Map<_, _>>()}}}))
        .unwrap(),
    };
    let metadata = Metadata { managed_fields: owners.iter().map(entry).collect(), ..Metadata::default() };
    let live = Live { metadata, keys: Vec::new(), pointer: POINTER };
    let guard = Guard::new([("location".into(), "beijing".into())], [Toleration::of_key("edge")]);
    let json =
        if spec.is_null() { json!({"kind": "Deployment"}) } else { json!({"spec": {"template": {"spec": spec}}}) };
    live.with_guard(&guard, "me", json).pointer(POINTER).cloned().unwrap_or_default()
}

#[test]
fn an_apply_with_the_field_contains_the_guard() {
    let ours = json!({"location": "beijing"});
    for (selector, whole) in [
        (json!({}), ours.clone()),
        (Value::Null, ours),
        (json!({"disk": "ssd"}), json!({"disk": "ssd", "location": "beijing"})),
        // The engine refuses this.
        (json!({"location": "hangzhou"}), json!({"location": "hangzhou"})),
    ] {
        assert_eq!(sent(&[], &json!({"nodeSelector": selector})), json!({"nodeSelector": whole}));
    }
    assert_eq!(sent(&[], &json!({"tolerations": null})), json!({"tolerations": []}));
}

#[test]
fn only_an_apply_that_would_remove_the_guard_contains_it() {
    let both: &[&str] = &[SELECTOR, TOLERATIONS];
    let kept = json!({"nodeSelector": {"location": "beijing"}, "tolerations": []});
    // Also without a pod specification.
    for spec in [json!({"containers": []}), Value::Null] {
        let mut whole = spec.as_object().cloned().unwrap_or_default();
        assert_eq!(sent(&[("you", "Apply", both)], &spec), spec);
        assert_eq!(sent(&[("me", "Update", both)], &spec), spec);
        assert_eq!(sent(&[("me", "Apply", both), ("you", "Update", both)], &spec), spec);
        whole.extend(kept.as_object().cloned().unwrap());
        assert_eq!(sent(&[("me", "Apply", both)], &spec), Value::Object(whole));
    }
    let selector = json!({"nodeSelector": {"location": "beijing"}});
    let owners: [(&str, &str, &[&str]); 2] = [("me", "Apply", both), ("you", "Apply", &[TOLERATIONS])];
    assert_eq!(sent(&owners, &json!({})), selector);
}

#[test]
fn a_label_that_is_called_like_the_field_is_another_field() {
    let label = json!({"f:metadata": {"f:annotations": {"f:nodeSelector": {}}}, "f:spec": {"f:nodeSelector": {}}});
    let owned = |fields: Value| {
        let fields_v1 = serde_json::from_value(fields).unwrap();
        Entry { manager: "you".into(), operation: "Update".into(), fields_v1 }
    };
    assert!(!owned(label).has_field(POINTER, SELECTOR));
    let field = json!({"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}});
    assert!(owned(field).has_field(POINTER, SELECTOR));
}

#[test]
fn an_apply_is_to_the_object_that_was_looked_at() {
    let metadata = Metadata { uid: "1".into(), resource_version: "2".into(), ..Metadata::default() };
    let live = Live { metadata, keys: Vec::new(), pointer: POINTER };
    let sent = |metadata: Value| -> Value {
        serde_json::from_slice::<Value>(&live.in_this_version(json!({"metadata": metadata}))).unwrap()["metadata"]
            .take()
    };
    let looked_at = json!({"uid": "1", "resourceVersion": "2"});
    for metadata in [Value::Null, json!({}), json!({"uid": "", "resourceVersion": null})] {
        assert_eq!(sent(metadata), looked_at);
    }
    // A client may name the version of the object.
    assert_eq!(sent(json!({"uid": "3"})), json!({"uid": "3", "resourceVersion": "2"}));
}

#[test]
fn of_a_live_object_only_the_guard_is_read() {
    let object = json!({
        "metadata": {"uid": "1", "resourceVersion": "2", "managedFields": [{"manager": "a", "operation": "Apply", "time": "b",
            "fieldsV1": {"f:spec": {".": {}, "f:containers": {"k:{\"name\":\"a\"}": {".": {}}}}}}]},
        "spec": {"jobTemplate": {"spec": {"template": {"metadata": {}, "spec": {"nodeSelector": {"location": "a"}}}}}},
        "status": {"spec": []},
    });
    let part: Part = serde_json::from_value(object).unwrap();
    let selector = part.at(pod_spec("cronjobs")).and_then(|pod| pod.node_selector.as_ref()).unwrap();
    assert_eq!(selector.keys().collect::<Vec<_>>(), ["location"]);
    assert!(part.at(pod_spec("deployments")).is_none());
}

#[test]
fn an_object_that_only_the_host_can_read_is_refused() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for body in [r#"{"a": 1e999}"#, &deep] {
        let Err(Refusal::Status(status)) = parsed(body.as_bytes()) else { panic!("{body}") };
        assert_eq!(status.code, 400);
    }
}
