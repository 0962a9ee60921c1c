//! Cluster-scoped custom objects.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::schema::{program_of_any, program_of_renamed};
use crate::view::tests::mapping;
use crate::view::{Filter, Verdict, View};

fn request() -> Request {
    let kinds = [("example.com".to_owned(), "Widget".to_owned())].into_iter().collect();
    Request::new(mapping().with_renamed_kinds(Arc::new(kinds)))
}

fn mapped(request: &Request, object: &Value) -> Result<Value, Refusal> {
    let mut out: Vec<Bytes> = Vec::new();
    request.map(&program_of_renamed(), &Bytes::from(object.to_string()), &mut out)?;
    Ok(serde_json::from_slice(&out.concat()).unwrap())
}

#[test]
fn objects_are_mapped_back() {
    let labels = json!({"a": "b"});
    for metadata in [json!({"name": "a"}), json!({"name": "a", "labels": labels}), json!({"name": "a.b.c"})] {
        let object = json!({"kind": "Widget", "metadata": metadata, "spec": {"name": "a"}});
        let host = mapped(&request(), &object).unwrap();
        assert_eq!(host["metadata"]["labels"]["atoll.dev/virtual-cluster"], "ke");
        assert_eq!(host["metadata"]["name"], format!("{}.ke", metadata["name"].as_str().unwrap()));
        let mut out: Vec<Bytes> = Vec::new();
        let body = Bytes::from(host.to_string());
        let verdict = View::new(mapping()).object(&program_of_renamed(), Filter::ByRole, &body, &mut out);
        assert_eq!(verdict, Ok(Verdict::Shown));
        assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), object);
    }
}

#[test]
fn clients_cannot_write_our_label() {
    for forged in [
        json!({"metadata": {"name": "a", "labels": {"atoll.dev/virtual-cluster": "hz"}}}),
        json!({"metadata": {"name": "a", "annotations": {"atoll.dev/other": "b"}}}),
    ] {
        for request in [request(), request().partial()] {
            assert_eq!(mapped(&request, &forged).unwrap_err().reason, Reason::Protected, "{forged}");
        }
    }
    let patch = json!({"metadata": {"labels": {"a": null}}, "spec": {}});
    assert_eq!(mapped(&request().partial(), &patch).unwrap(), patch);
    let long = json!({"metadata": {"name": "a".repeat(251)}});
    assert!(matches!(mapped(&request(), &long).unwrap_err().reason, Reason::TooLong(_)));
}

#[test]
fn owners_are_named_as_on_the_host() {
    let object = |kind: &str, name: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "example.com/v1", "kind": kind, "name": name}]}});
    let map = |object: Value| {
        let mut out: Vec<Bytes> = Vec::new();
        request().map(&program_of_any(), &Bytes::from(object.to_string()), &mut out).unwrap();
        serde_json::from_slice::<Value>(&out.concat()).unwrap()
    };
    assert_eq!(map(object("Widget", "a")), object("Widget", "a.ke"));
    assert_eq!(map(object("Other", "a")), object("Other", "a"));
}
