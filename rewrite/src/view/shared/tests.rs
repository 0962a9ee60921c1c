use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Program;
use crate::schema::program_for;
use crate::view::tests::view;
use crate::view::{ListStream, View, WatchStream};

fn program() -> Program {
    program_for("scheduling.k8s.io", "v1", "priorityclasses").of_shared()
}

/// The object as virtual cluster `ke` sees it.
#[track_caller]
fn shown_to(view: &View, object: &Value) -> Result<Value, Verdict> {
    let mut out: Vec<Bytes> = Vec::new();
    match view.object(&program(), Filter::Shared, &object.to_string().into(), &mut out).unwrap() {
        Verdict::Shown => Ok(serde_json::from_slice(&out.concat()).unwrap()),
        verdict => Err(verdict),
    }
}

fn shown(metadata: &Value) -> Result<Value, Verdict> {
    shown_to(&view(), &json!({"kind": "PriorityClass", "metadata": metadata, "value": 1}))
        .map(|mut shown| shown["metadata"].take())
}

fn overlay(labels: &Value, annotations: &Value) -> String {
    json!({"annotations": annotations, "labels": labels, "wish": "abc"}).to_string()
}

#[test]
fn objects_of_the_operator_are_visible_to_all() {
    let plain = json!({"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x"]});
    assert_eq!(shown(&plain), Ok(plain.clone()));
    assert_eq!(shown(&json!({"name": "a"})), Ok(json!({"name": "a"})));
    let ours = overlay(&json!({"a": "mine", "x": "y"}), &json!({}));
    let others = overlay(&json!({"secret": "s"}), &json!({"secret": "s"}));
    let annotations = json!({"c": "d", "overlay.atoll.dev/ke": ours, "overlay.atoll.dev/hz": others});
    let host = json!({"name": "a", "annotations": annotations, "labels": {"a": "b", "k": "l"}});
    let expected = json!({"name": "a", "annotations": {"c": "d"}, "labels": {"a": "mine", "k": "l", "x": "y"}});
    assert_eq!(shown(&host), Ok(expected));
    // The host's object has no labels, and the overlay is its only annotation.
    let host = json!({"name": "a", "annotations": {"overlay.atoll.dev/ke": ours}});
    assert_eq!(shown(&host), Ok(json!({"name": "a", "labels": {"a": "mine", "x": "y"}})));
}

#[test]
fn objects_of_other_clusters_are_hidden() {
    let marked = |annotations: Value| json!({"name": "a", "labels": {"atoll.dev/shared": "", "l": "m"}, "annotations": annotations});
    let ours = overlay(&json!({"a": "b"}), &json!({"c": "\"d\"\n", "atoll.dev/shared": "forged"}));
    let others = overlay(&json!({"secret": "s"}), &json!({}));
    assert_eq!(shown(&marked(json!({"overlay.atoll.dev/hz": others}))), Err(Verdict::Foreign));
    assert_eq!(shown(&marked(json!({"overlay.atoll.dev/hz": others, "left.atoll.dev/ke": ""}))), Err(Verdict::Left));
    assert_eq!(shown(&marked(json!({"overlay.atoll.dev/hz": others, "left.atoll.dev/xx": ""}))), Err(Verdict::Foreign));
    let both = json!({"overlay.atoll.dev/hz": others, "overlay.atoll.dev/ke": ours, "left.atoll.dev/ke": ""});
    let expected = json!({"name": "a", "labels": {"a": "b"}, "annotations": {"c": "\"d\"\n"}});
    assert_eq!(shown(&marked(both)), Ok(expected));
    for unreadable in ["{}", "", "[]", "{\"labels\":1}", "{\"labels\":{\"a\":1}}", "{\"labels\":{\"a\":\"b\"}"] {
        let shown = shown(&marked(json!({"overlay.atoll.dev/ke": unreadable})));
        assert_eq!(shown, Ok(json!({"name": "a"})), "{unreadable}");
    }
}

#[test]
fn managers_of_other_clusters_are_hidden() {
    let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
    let metadata = json!({"f:annotations": {}, "f:labels": {}});
    let managed = json!([
        entry("atoll:ke:kubectl", json!({"f:metadata": metadata, "f:value": {}})),
        entry("atoll:hz:kubectl", json!({"f:value": {}})),
        entry("atoll:ke:other", json!({"f:metadata": metadata})),
        entry("kube-apiserver", json!({"f:metadata": metadata, "f:status": {}})),
    ]);
    let annotations = json!({"overlay.atoll.dev/ke": "{}"});
    let host =
        json!({"name": "a", "labels": {"atoll.dev/shared": ""}, "annotations": annotations, "managedFields": managed});
    let expected = json!([entry("kubectl", json!({"f:value": {}})), entry("kube-apiserver", json!({"f:status": {}}))]);
    assert_eq!(shown(&host), Ok(json!({"name": "a", "managedFields": expected})));
    let host = json!({"name": "a", "managedFields": [entry("atoll:hz:kubectl", json!({"f:metadata": metadata}))]});
    assert_eq!(shown(&host), Ok(json!({"name": "a"})));
    let host = json!({"name": "a", "managedFields": [entry("kubectl", json!({"f:metadata": metadata}))]});
    assert_eq!(shown(&host), Ok(host.clone()));
}

#[test]
fn selectors_match_the_shown_labels() {
    let of = |selector: &str| view().with_selector(selector.parse().unwrap());
    let annotations = json!({"overlay.atoll.dev/ke": overlay(&json!({"a": "b"}), &json!({}))});
    let marked =
        json!({"metadata": {"name": "a", "labels": {"atoll.dev/shared": "", "a": "host"}, "annotations": annotations}});
    let plain = json!({"metadata": {"name": "a", "labels": {"a": "host"}}});
    assert!(shown_to(&of("a=b"), &marked).is_ok());
    assert_eq!(shown_to(&of("a=host"), &marked), Err(Verdict::Unselected));
    assert!(shown_to(&of("a=host"), &plain).is_ok());
    assert_eq!(shown_to(&of("a=b"), &plain), Err(Verdict::Unselected));
}

fn class(name: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "labels": {"atoll.dev/shared": ""}, "annotations": annotations});
    json!({"kind": "PriorityClass", "metadata": metadata})
}

fn table(objects: &[Value]) -> Value {
    let rows: Vec<_> = objects.iter().map(|object| json!({"cells": ["x"], "object": object})).collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": [{"name": "Name"}], "rows": rows})
}

#[test]
fn lists_and_tables_show_only_visible_objects() {
    let objects = [
        class("own", &json!({"overlay.atoll.dev/ke": "{}"})),
        class("foreign", &json!({"overlay.atoll.dev/hz": "{}"})),
        class("left", &json!({"left.atoll.dev/ke": ""})),
    ];
    for list in [json!({"kind": "PriorityClassList", "items": objects}), table(&objects)] {
        let mut stream = ListStream::new(view(), program(), Filter::Shared);
        let mut out: Vec<Bytes> = Vec::new();
        stream.push(&list.to_string().into(), &mut out).unwrap();
        stream.finish().unwrap();
        let shown = String::from_utf8(out.concat()).unwrap();
        assert!(shown.contains("own") && !shown.contains("foreign") && !shown.contains("left"), "{shown}");
        assert!(!shown.contains("atoll.dev"), "{shown}");
    }
}

#[test]
fn an_object_that_leaves_the_cluster_is_reported_as_deleted() {
    let leaving = class("a", &json!({"left.atoll.dev/ke": "", "overlay.atoll.dev/hz": "{}"}));
    let foreign = class("a", &json!({"overlay.atoll.dev/hz": "{}"}));
    for wrapped in [|object: &Value| object.clone(), |object: &Value| table(std::slice::from_ref(object))] {
        let watched = |kind: &str, object: &Value| {
            let mut stream = WatchStream::new(view(), program(), Filter::Shared);
            let event = json!({"type": kind, "object": wrapped(object)});
            let mut out: Vec<Bytes> = Vec::new();
            stream.push(&(event.to_string() + "\n").into(), &mut out).unwrap();
            let shown = String::from_utf8(out.concat()).unwrap();
            assert!(!shown.contains("atoll.dev"), "{shown}");
            (!shown.is_empty()).then(|| serde_json::from_str::<Value>(&shown).unwrap()["type"].take())
        };
        assert_eq!(watched("MODIFIED", &leaving), Some(json!("DELETED")));
        assert_eq!(watched("ADDED", &leaving), None);
        assert_eq!(watched("DELETED", &leaving), None);
        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            assert_eq!(watched(kind, &foreign), None);
        }
    }
}

fn maps() -> impl Strategy<Value = Keys> {
    proptest::collection::btree_map("[a-c]{1,2}(/[a-c])?", "\\PC{0,5}", 0..4)
}

proptest! {
    #[test]
    fn an_overlay_is_shown_as_it_was_written(labels in maps(), annotations in maps(), host in maps(), marked: bool) {
        let stored = overlay(&json!(labels), &json!(annotations));
        let mut host_labels = host.clone();
        if marked {
            host_labels.insert(SHARED_LABEL.to_owned(), String::new());
        }
        let metadata = json!({"name": "a", "labels": host_labels, "annotations": {"overlay.atoll.dev/ke": stored}});
        let shown = shown(&metadata).unwrap();
        let mut expected = if marked { Keys::new() } else { host };
        expected.extend(labels);
        prop_assert_eq!(shown["labels"].clone(), if expected.is_empty() && marked { Value::Null } else { json!(expected) });
        prop_assert_eq!(shown["annotations"].clone(), if annotations.is_empty() { Value::Null } else { json!(annotations) });
    }
}
