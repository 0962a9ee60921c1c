use super::*;
use crate::kinds;

fn by(manager: &str) -> ApplyOptions<'_> {
    ApplyOptions { manager, force: false, subresource: "" }
}

fn kind() -> &'static Kind {
    kinds::of("apps", "deployments")
}

#[test]
fn fields_that_are_no_longer_applied_are_removed() {
    let first = json!({"metadata": {"name": "d", "labels": {"a": "1", "b": "2"}}, "spec": {"replicas": 2}});
    let live = first_apply(kind(), by("m"), &first);
    let second = json!({"metadata": {"name": "d", "labels": {"a": "1"}}, "spec": {"replicas": 2}});
    let applied = apply(kind(), by("m"), &live, &second).unwrap();
    assert_eq!(applied["metadata"]["labels"], json!({"a": "1"}));
    assert_eq!(apply(kind(), by("m"), &applied, &second).unwrap(), applied, "unchanged");
}

#[test]
fn items_are_merged_by_key() {
    let of = |names: &[&str]| {
        let containers: Vec<_> = names.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        json!({"metadata": {"name": "d"}, "spec": {"containers": containers}})
    };
    let live = first_apply(kind(), by("m"), &of(&["a", "b"]));
    let applied = apply(kind(), by("m"), &live, &of(&["b", "c"])).unwrap();
    let names: Vec<_> = object::items(&applied["spec"]["containers"]).iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["b", "c"]);
}

#[test]
fn an_item_may_have_two_managers() {
    let of = |field: &str| json!({"metadata": {"name": "d"}, "spec": {"containers": [{"name": "a", field: "x"}]}});
    let live = first_apply(kind(), by("one"), &of("image"));
    let both = apply(kind(), by("two"), &live, &of("workingDir")).unwrap();
    assert_eq!(both["spec"]["containers"], json!([{"name": "a", "image": "x", "workingDir": "x"}]));
    let nothing = json!({"metadata": {"name": "d"}, "spec": {}});
    let one_left = apply(kind(), by("one"), &both, &nothing).unwrap();
    assert_eq!(one_left["spec"]["containers"], json!([{"name": "a", "workingDir": "x"}]));
}

#[test]
fn two_managers_of_a_field_conflict_unless_one_forces() {
    let of = |replicas: u32| json!({"metadata": {"name": "d"}, "spec": {"replicas": replicas}});
    let live = first_apply(kind(), by("one"), &of(1));
    let refused = apply(kind(), by("two"), &live, &of(2)).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
    assert!(apply(kind(), by("two"), &live, &of(1)).is_ok(), "they agree");
    let forced = apply(kind(), ApplyOptions { force: true, ..by("two") }, &live, &of(2)).unwrap();
    assert_eq!(forced["spec"]["replicas"], 2);
    let managers: Vec<_> =
        object::items(&forced["metadata"]["managedFields"]).iter().map(|entry| entry["manager"].clone()).collect();
    assert_eq!(managers, ["two"]);
}
