use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// What serde_json finds: the namespace, the name, the version, the labels and the owner.
fn expected(object: &Value, path: &[&str]) -> Value {
    let owner = path.iter().try_fold(object, |value, key| value.get(key)).filter(|owner| owner.is_string());
    let metadata = &object["metadata"];
    let namespace = metadata.get("namespace").cloned().unwrap_or_else(|| "".into());
    json!([namespace, metadata["name"], metadata["resourceVersion"], metadata["labels"], owner])
}

fn found(facts: &Facts<'_>) -> Value {
    let labels = facts.labels.iter().map(|label| (label.key.to_string(), Value::from(&*label.value)));
    json!([facts.namespace, facts.name, facts.resource_version, labels.collect::<Map<_, _>>(), facts.owner])
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let keys = prop_oneof![Just("metadata".to_owned()), Just("claimRef".to_owned()), Just("name".to_owned()), ".*"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(keys, inner, 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn facts_are_what_serde_json_reads(
        namespace in proptest::option::of(".{0,8}"),
        name in ".{0,8}",
        version in "[0-9]{1,20}",
        labels in proptest::collection::btree_map(".{0,6}", ".{0,6}", 0..5),
        owner in proptest::option::of(".{0,8}"),
        rest in anything(),
        pretty in any::<bool>(),
    ) {
        let mut metadata = json!({
            "annotations": {"a": rest}, "labels": labels, "managedFields": [rest], "name": name,
            "resourceVersion": version,
        });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let mut object = json!({"a": rest, "metadata": metadata, "spec": {"a": rest}, "status": rest});
        if let Some(owner) = owner {
            object["spec"]["claimRef"] = json!({"name": "x", "namespace": owner});
        }
        let text = if pretty { serde_json::to_vec_pretty(&object) } else { serde_json::to_vec(&object) }.unwrap();
        let path = ["spec", "claimRef", "namespace"];
        let facts = Facts::read(&text, &path).unwrap();
        prop_assert_eq!(found(&facts), expected(&object, &path));
        let metadata: Value = serde_json::from_slice(&text[facts.metadata_at.clone()]).unwrap();
        prop_assert_eq!(&metadata, &object["metadata"]);
        prop_assert_eq!(&text[facts.resource_version_at.clone()], version.as_bytes());

        for event in [EventType::Added, EventType::Modified, EventType::Deleted] {
            let mut watched = format!(r#"{{"type":"{}","object":"#, event.as_str()).into_bytes();
            let start = watched.len();
            watched.extend_from_slice(&text);
            watched.extend_from_slice(b"}\n");
            let change = Frame::Change { event, object: start..start + text.len(), facts: facts.clone() };
            prop_assert_eq!(frame(&watched, &path).unwrap(), change);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Facts::read(&text, &["spec", "a"]);
        let _ = frame(&text, &["spec", "a"]);
    }
}

#[test]
fn bookmarks_have_only_a_version() {
    let bookmark =
        br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null}}}"#;
    let read = frame(bookmark, &[]).unwrap();
    assert_eq!(read, Frame::Bookmark(Bookmark { resource_version: "12".into(), ends_initial_events: false }));
    let last = br#"{"object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"7"}},
        "type":"BOOKMARK"}"#;
    let read = frame(last, &[]).unwrap();
    assert_eq!(read, Frame::Bookmark(Bookmark { resource_version: "7".into(), ends_initial_events: true }));
}

#[test]
fn errors_have_a_status() {
    let text = br#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#;
    let Frame::Error { status } = frame(text, &[]).unwrap() else { panic!("no error") };
    assert_eq!(&text[status], br#"{"kind":"Status","code":410}"#);
}

#[test]
fn what_is_not_an_object_is_refused() {
    let missing = |field| FactsError::Missing { field };
    let duplicate = |field| FactsError::Duplicate { field };
    let ok = r#""name":"n","resourceVersion":"1""#;
    for (text, error) in [
        (r#"{"kind":"Pod"}"#.to_owned(), missing("metadata")),
        (r#"{"metadata":{"resourceVersion":"1"}}"#.to_owned(), missing("metadata.name")),
        (r#"{"metadata":{"name":"n"}}"#.to_owned(), missing("metadata.resourceVersion")),
        (r#"{"metadata":{"name":"n","resourceVersion":1}}"#.to_owned(), missing("metadata.resourceVersion")),
        (format!(r#"{{"metadata":{{{ok},"labels":{{"a":1}}}}}}"#), missing("metadata.labels")),
        (format!(r#"{{"metadata":{{{ok}}},"metadata":{{{ok}}}}}"#), duplicate("metadata")),
        (format!(r#"{{"metadata":{{{ok},"name":"m"}}}}"#), duplicate("metadata.name")),
        (format!(r#"{{"metadata":{{{ok}}},"spec":{{"a":"1","\u0061":"2"}}}}"#), duplicate("the field of its owner")),
    ] {
        assert_eq!(Facts::read(text.as_bytes(), &["spec", "a"]), Err(error), "{text}");
    }
    let null_labels = format!(r#"{{"metadata":{{{ok},"labels":null}},"spec":7}}"#);
    assert!(Facts::read(null_labels.as_bytes(), &["spec", "a"]).is_ok_and(|facts| facts.owner.is_none()));
    assert_eq!(frame(br#"{"type":"CHANGED","object":{}}"#, &[]), Err(missing("type")));
    assert_eq!(frame(br#"{"type":"ADDED"}"#, &[]), Err(missing("object")));
}
