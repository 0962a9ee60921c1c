//! What a VirtualClusterSet must write and delete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ops::secret::sha256;
use protocol::ClusterName;
use serde_json::{Value, json};

use super::super::follow::Objects;
use super::super::object::Declared;
use super::super::spec::DeletionPolicy;
use super::super::{API_VERSION, KIND};
use super::object::ClusterSet;
use super::spec::SetSpec;
use super::{KIND as SET_KIND, SET_LABEL};

/// The annotation of a VirtualCluster with a digest of what its set has applied last.
pub(super) const APPLIED: &str = "atoll.dev/applied";

/// The most VirtualClusters of one set. A label with a value per node should not fill the host.
const MAX_CLUSTERS: usize = 1000;

/// What is to be done for a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The VirtualClusters to apply.
    pub apply: Vec<Value>,
    /// The VirtualClusters whose values do not exist, by name.
    pub obsolete: BTreeSet<String>,
    /// The VirtualClusters of the set, by name.
    pub own: BTreeSet<String>,
    /// Why there is no VirtualCluster for some values.
    pub problems: Vec<String>,
}

/// Compares the VirtualClusters of a set with the values that exist.
pub fn plan(set: &ClusterSet, spec: &SetSpec, values: &BTreeSet<String>, objects: &Objects) -> Plan {
    let set_name = set.metadata.name.as_str();
    let is_own = |object: &Declared| object.metadata.labels.get(SET_LABEL).is_some_and(|owner| owner == set_name);
    let mut plan = Plan::default();
    let mut named: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for value in values {
        let name = spec.name_of(value);
        if let Err(error) = name.parse::<ClusterName>() {
            plan.problems.push(format!("`{name}` is not the name of a virtual cluster: {error}"));
        } else if named.len() == MAX_CLUSTERS && !named.contains_key(&name) {
            plan.problems.push(format!("there are more than {MAX_CLUSTERS} values"));
            break;
        } else {
            named.entry(name).or_default().push(value);
        }
    }
    let mut wanted: BTreeMap<&str, &str> = BTreeMap::new();
    // VirtualClusters that stay as they are.
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for (name, values) in &named {
        let own = objects.get(name).filter(|object| is_own(object));
        match choose(spec, name, values, own.map(Arc::as_ref)) {
            Choice::Value(value) => {
                wanted.insert(name, value);
            }
            Choice::Contested { kept: value, values } => {
                let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
                let values = values.join(" and ");
                plan.problems.push(match value {
                    Some(value) => format!("{values} would have the same name {name}, which keeps `{value}`"),
                    None => format!("{values} would have the same name {name}, so none of them has a VirtualCluster"),
                });
                if let Some(value) = value.filter(|value| named[name].contains(value)) {
                    wanted.insert(name, value);
                } else if named[name].len() > 1 {
                    kept.insert(name);
                }
            }
        }
    }
    for (name, value) in &wanted {
        match objects.get(*name) {
            Some(object) if !is_own(object) => {
                plan.problems.push(format!("there is a VirtualCluster {name} that the set has not created"));
            }
            // It is created again when it is gone.
            Some(object) if object.is_ending() => {}
            existing => {
                let applied = applied(set, spec, name, value);
                if !existing.is_some_and(|object| is_in_force(object, &applied)) {
                    plan.apply.push(applied);
                }
            }
        }
    }
    let own = objects.values().filter(|object| is_own(object));
    plan.own = own.map(|object| object.metadata.name.clone()).collect();
    let is_wanted = |name: &str| wanted.contains_key(name) || kept.contains(name);
    let is_obsolete = |name: &&String| !is_wanted(name) && objects.get(*name).is_some_and(|object| !object.is_ending());
    plan.obsolete = plan.own.iter().filter(is_obsolete).cloned().collect();
    // They follow the set, too: with other owners, for example, they stay when it is deleted.
    for name in &plan.obsolete {
        let Some(object) = objects.get(name) else { continue };
        let Some(value) = value_of(spec, name, object) else { continue };
        let applied = applied(set, spec, name, value);
        if !is_in_force(object, &applied) {
            plan.apply.push(applied);
        }
    }
    plan
}

/// The value for a name.
enum Choice<'v> {
    /// This one.
    Value(&'v str),
    /// Several values have the name, of which the VirtualCluster keeps one. A node must not take over the VirtualCluster of
    /// another site with a value that differs only in case.
    Contested { kept: Option<&'v str>, values: BTreeSet<&'v str> },
}

/// Chooses among the values that exist, and the one that the VirtualCluster has.
fn choose<'v>(spec: &SetSpec, name: &str, values: &[&'v str], own: Option<&'v Declared>) -> Choice<'v> {
    let kept = own.and_then(|object| value_of(spec, name, object));
    let all: BTreeSet<&str> = values.iter().copied().chain(kept).collect();
    match values {
        [value] if all.len() == 1 => Choice::Value(value),
        _ => Choice::Contested { kept, values: all },
    }
}

/// The value that a VirtualCluster has, if its name is that of the value.
fn value_of<'o>(spec: &SetSpec, name: &str, object: &'o Declared) -> Option<&'o str> {
    spec.value_of(object.raw_spec()).filter(|value| spec.name_of(value) == name)
}

/// The VirtualCluster for a value, as it is applied.
fn applied(set: &ClusterSet, spec: &SetSpec, name: &str, value: &str) -> Value {
    let mut labels = spec.labels.clone();
    labels.insert(SET_LABEL.to_owned(), set.metadata.name.clone());
    // Kubernetes' garbage collector deletes what a deleted set owns.
    let owners = match spec.deletion_policy {
        DeletionPolicy::Orphan => json!([]),
        DeletionPolicy::Delete => json!([{
            "apiVersion": API_VERSION, "kind": SET_KIND, "name": set.metadata.name, "uid": set.metadata.uid,
        }]),
    };
    let mut object = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
        "spec": spec.of(value),
    });
    let digest = sha256(object.to_string().as_bytes());
    object["metadata"]["annotations"] = json!({APPLIED: digest});
    object
}

/// Whether the object has what would be applied. Others may have added more.
fn is_in_force(object: &Declared, applied: &Value) -> bool {
    let metadata = &applied["metadata"];
    let digest = metadata["annotations"][APPLIED].as_str();
    object.metadata.annotations.get(APPLIED).map(String::as_str) == digest
        && contains(object.raw_spec(), &applied["spec"])
}

fn contains(stored: &Value, part: &Value) -> bool {
    match (stored, part) {
        (Value::Object(stored), Value::Object(part)) => {
            part.iter().all(|(key, part)| stored.get(key).is_some_and(|stored| contains(stored, part)))
        }
        (Value::Array(stored), Value::Array(part)) => {
            stored.len() == part.len() && stored.iter().zip(part).all(|(stored, part)| contains(stored, part))
        }
        _ => stored == part,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn set(spec: &Value) -> ClusterSet {
        ClusterSet::deserialize(json!({"metadata": {"name": "sites", "uid": "1"}, "spec": spec})).unwrap()
    }

    fn stored(objects: &[Value]) -> Objects {
        let objects = objects.iter().map(|object| Declared::deserialize(object).unwrap());
        objects.map(|object| (object.metadata.name.clone(), Arc::new(object))).collect()
    }

    fn values(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    fn planned(set: &ClusterSet, exist: &[&str], objects: &[Value]) -> Plan {
        plan(set, &set.spec().unwrap(), &values(exist), &stored(objects))
    }

    #[test]
    fn what_is_applied_stays_until_something_changes() {
        let spec = |policy| json!({"nodeLabel": "site", "namePrefix": "ke-", "deletionPolicy": policy, "template": {"spec": {"tolerations": [{"key": "a"}]}}});
        let one = set(&spec("Delete"));
        let first = planned(&one, &["Beijing", "hangzhou"], &[]);
        let names: Vec<_> = first.apply.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!((names, first.problems.len()), (vec!["ke-beijing", "ke-hangzhou"], 0));
        assert_eq!(first.apply[0]["spec"]["nodeSelector"], json!({"site": "Beijing"}));
        assert_eq!(first.apply[0]["metadata"]["ownerReferences"][0]["uid"], "1");

        // The API server adds defaults.
        let mut there = first.apply.clone();
        for object in &mut there {
            object["spec"]["deletionPolicy"] = "Orphan".into();
        }
        let same = planned(&one, &["Beijing", "hangzhou"], &there);
        assert_eq!((same.apply.len(), same.own.len(), same.obsolete.len()), (0, 2, 0));
        assert_eq!(planned(&set(&spec("Orphan")), &["Beijing", "hangzhou"], &there).apply.len(), 2, "other owners");

        // Somebody has changed one.
        there[1]["spec"]["nodeSelector"]["site"] = "elsewhere".into();
        let repaired = planned(&one, &["Beijing", "hangzhou"], &there);
        assert_eq!(repaired.apply, first.apply[1..]);
        // A value is gone.
        assert_eq!(planned(&one, &["hangzhou"], &there).obsolete, values(&["ke-beijing"]));
        let orphaned = planned(&set(&spec("Orphan")), &["hangzhou"], &there);
        let of_beijing = orphaned.apply.iter().find(|object| object["metadata"]["name"] == "ke-beijing").unwrap();
        assert_eq!(of_beijing["metadata"]["ownerReferences"], json!([]), "it stays when the set is deleted");
        there[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(planned(&one, &["hangzhou"], &there).obsolete, values(&[]), "it is being deleted already");
        assert_eq!(planned(&one, &["Beijing"], &there[..1]).apply.len(), 0, "it is created when it is gone");
    }

    #[test]
    fn values_without_a_name_are_reported() {
        let set = set(&json!({"nodeLabel": "site"}));
        let foreign = json!({"metadata": {"name": "mine"}, "spec": {"nodeSelector": {"a": "b"}}});
        let plan = planned(&set, &["", "A", "a", "a.b", "mine", "ok"], std::slice::from_ref(&foreign));
        let names: Vec<_> = plan.apply.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ok"]);
        let problems = plan.problems.join("\n");
        for expect in [
            "`` is not",
            "`a.b` is not",
            "`A` and `a` would have the same name a, so none",
            "VirtualCluster mine that the set has not created",
        ] {
            assert!(problems.contains(expect), "{problems}");
        }
        assert!(plan.own.is_empty() && plan.obsolete.is_empty());
    }

    #[test]
    fn a_value_that_differs_in_case_takes_nothing_over() {
        let set = set(&json!({"nodeLabel": "site"}));
        let there = planned(&set, &["beijing"], &[]).apply;
        let check = |exist: &[&str], there: &[Value], problem: &str| {
            let plan = planned(&set, exist, there);
            assert!(plan.problems.join("\n").contains(problem), "{:?}", plan.problems);
            (plan.apply, plan.obsolete)
        };
        let nothing = (vec![], values(&[]));
        assert_eq!(check(&["BEIJING", "beijing"], &there, "`BEIJING` and `beijing` would"), nothing);
        assert_eq!(check(&["BEIJING", "beijing"], &there, "which keeps `beijing`"), nothing);
        // Somebody has changed another part of the object.
        let mut changed = there.clone();
        changed[0]["metadata"]["annotations"] = json!({});
        assert_eq!(check(&["BEIJING", "beijing"], &changed, "keeps `beijing`"), (there.clone(), values(&[])));
        // The value that it has is gone, so it is deleted before the other one gets it.
        assert_eq!(check(&["BEIJING"], &there, "keeps `beijing`"), (vec![], values(&["beijing"])));
        // Nobody knows which of the two it was.
        changed[0]["spec"]["nodeSelector"]["site"] = "elsewhere".into();
        assert_eq!(check(&["BEIJING", "beijing"], &changed, "so none of them"), nothing);
    }

    #[test]
    fn a_set_has_no_end_of_clusters() {
        let many: Vec<_> = (0..MAX_CLUSTERS + 5).map(|number| format!("n{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let plan = planned(&set(&json!({"nodeLabel": "site"})), &many, &[]);
        assert_eq!((plan.apply.len(), plan.problems.len()), (MAX_CLUSTERS, 1));
    }
}
