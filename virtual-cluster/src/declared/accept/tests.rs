use serde_json::{Value, json};

use super::*;
use crate::declared::FINALIZER;

/// An object with our finalizer. Objects are created in the order of `second`.
fn object(name: &str, second: u32, spec: &Value) -> Value {
    let metadata = json!({
        "name": name, "uid": format!("uid-{name}"), "generation": 1, "finalizers": [FINALIZER],
        "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
    });
    json!({"metadata": metadata, "spec": spec})
}

fn valid() -> Value {
    json!({"nodeSelector": {"location": "beijing"}})
}

fn deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    object
}

fn objects(all: impl IntoIterator<Item = Value>) -> Objects {
    let read = |object| serde_json::from_value::<Declared>(object).unwrap();
    all.into_iter().map(read).map(|object| (object.metadata.name.clone(), Arc::new(object))).collect()
}

fn accepted(objects: &Objects) -> Accepted {
    accept(&Others::default(), &InForce::new(), objects)
}

fn others(names: &[&str]) -> Others {
    Others { virtuals: names.iter().map(|name| (*name).to_owned()).collect(), ..Others::default() }
}

#[test]
fn an_object_is_served_once_it_has_the_finalizer() {
    let mut new = object("a", 0, &valid());
    new["metadata"]["finalizers"] = json!([]);
    let first = accepted(&objects([new.clone()]));
    assert_eq!((first.clusters.len(), &first.verdicts["a"]), (0, &Verdict::Unclaimed));
    let second = accepted(&objects([object("a", 0, &valid())]));
    assert_eq!((second.clusters.len(), &second.verdicts["a"]), (1, &Verdict::Served));
    // Somebody removes the finalizer.
    let third = accept(&Others::default(), &second.clusters, &objects([new]));
    assert_eq!((&third.clusters, &third.verdicts["a"]), (&second.clusters, &Verdict::Unclaimed));
}

#[test]
fn a_mistake_leaves_the_last_valid_specification_in_force() {
    let before = accepted(&objects([object("a", 0, &valid())]));
    let wrong = || objects([object("a", 0, &json!({"nodeSelector": {}}))]);
    let after = accept(&Others::default(), &before.clusters, &wrong());
    assert_eq!(after.clusters, before.clusters);
    assert!(
        matches!(&after.verdicts["a"], Verdict::Invalid { is_served: true, reason } if reason.contains("own every node"))
    );
    // An object that was deleted and created again is another one.
    let mut again = object("a", 9, &json!({}));
    again["metadata"]["uid"] = json!("other");
    for objects in [wrong(), objects([again])] {
        let before = if objects["a"].metadata.uid == "other" { before.clusters.clone() } else { InForce::new() };
        let fresh = accept(&Others::default(), &before, &objects);
        assert!(fresh.clusters.is_empty());
        assert!(matches!(fresh.verdicts["a"], Verdict::Invalid { is_served: false, .. }));
    }
}

#[test]
fn the_file_and_then_the_oldest_object_have_the_name() {
    let all = objects([
        object("c", 2, &valid()),
        object("b-c", 1, &valid()),
        object("x", 3, &valid()),
        object("y-x", 4, &valid()),
        object("z", 0, &valid()),
        object("p", 0, &valid()),
    ]);
    let physicals = ["p".to_owned()].into();
    let accepted = accept(&Others { physicals, ..others(&["z"]) }, &InForce::new(), &all);
    assert_eq!(accepted.clusters.keys().collect::<Vec<_>>(), ["b-c", "x"]);
    let reason = |name: &str| match &accepted.verdicts[name] {
        Verdict::Conflict(reason) => reason.to_string(),
        other => panic!("{name}: {other:?}"),
    };
    assert!(reason("c").contains("b-c ends with `-c`, and b-c is a virtual cluster"), "{}", reason("c"));
    assert!(reason("y-x").contains("y-x ends with `-x`, and x is a virtual cluster"), "{}", reason("y-x"));
    assert!(reason("z").contains("configuration file has a virtual cluster z"));
    assert!(reason("p").contains("configuration file has a physical cluster p"));
    let meets_file = accept(&others(&["q-x"]), &InForce::new(), &objects([object("x", 0, &valid())]));
    assert!(matches!(meets_file.verdicts["x"], Verdict::Conflict(_)));
}

#[test]
fn a_new_object_does_not_displace_one_that_is_served() {
    let mut new = object("a-b", 0, &valid());
    new["metadata"]["finalizers"] = json!([]);
    for second in [0, 1] {
        // Even if it seems to be older.
        let accepted = accepted(&objects([object("b", second, &valid()), new.clone()]));
        assert_eq!(accepted.verdicts["b"], Verdict::Served);
        assert!(matches!(accepted.verdicts["a-b"], Verdict::Conflict(_)));
    }
}

#[test]
fn a_deleted_object_is_not_served_and_still_has_its_names() {
    let ending = deleted(object("c", 5, &json!({"nodeSelector": 1, "deletionPolicy": "Delete"})));
    let all = objects([ending.clone(), object("b-c", 1, &valid())]);
    let decided = accepted(&all);
    assert_eq!(decided.verdicts["c"], Verdict::Ending(DeletionPolicy::Delete));
    assert!(matches!(decided.verdicts["b-c"], Verdict::Conflict(_)));
    assert!(decided.clusters.is_empty());
    // The file has the cluster, which must not lose its namespaces.
    assert_eq!(accept(&others(&["c"]), &InForce::new(), &all).verdicts["c"], Verdict::Yielding);
    // One that no agent has ever served has nothing on the host.
    let mut unclaimed = ending;
    unclaimed["metadata"]["finalizers"] = json!(["example.com/other"]);
    let decided = accepted(&objects([unclaimed, object("b-c", 1, &valid())]));
    assert_eq!(decided.verdicts["b-c"], Verdict::Served);
}
