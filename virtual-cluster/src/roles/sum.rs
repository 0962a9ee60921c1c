//! The rules of an aggregated ClusterRole: the distinct rules of all roles that it selects, in the order of the
//! selectors and of the names.
//!
//! Clients write both the selectors and the roles, so the work is charged to a [`Budget`], and a sum that exceeds the
//! limits of a role is an error. This reads a [`Snapshot`] and holds no lock.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use kube_wire::selector::{LabelSelector, Requirement, Test};
use rewrite::ClusterName;
use rewrite::request::MAX_PERMISSIONS;
use serde::Deserialize;

use super::role::{Role, Rule};
use super::room::NoRoom;
use super::version::Version;

/// The maximum length of the rules of one role, in bytes of JSON. With its metadata, the role must fit into etcd
/// (`--max-request-bytes`, 1.5 MiB).
const MAX_BYTES: usize = 1 << 20;

/// The budget for all sums of one virtual cluster: a unit is a compared label, or sixteen bytes that are read. The
/// whole budget takes about a second.
const BUDGET: u64 = 20_000_000;

/// The roles that a virtual cluster sees, at one point in time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) version: Version,
    pub(super) shared: Vec<(String, Arc<Role>)>,
    pub(super) own: Vec<(String, Arc<Role>)>,
}

/// A role whose rules differ from the aggregated ones.
#[derive(Debug, PartialEq)]
pub(super) struct Stale {
    pub(super) cluster: ClusterName,
    /// Its name in the virtual cluster.
    pub(super) name: String,
    /// The uid and version of the role that was read. Another version may have another author.
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// The aggregated rules.
    pub(super) sum: Result<Vec<Rule>, Excess>,
}

/// Why a role cannot be aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("the rules that it selects grant more than {MAX_PERMISSIONS} permissions")]
    Permissions,
    #[error("the rules that it selects have more than {MAX_BYTES} bytes")]
    Bytes,
    #[error(
        "the aggregated roles of this virtual cluster select too many rules: use fewer such roles, or fewer selectors"
    )]
    Work,
    #[error(transparent)]
    Room(#[from] NoRoom),
}

/// The remaining budget.
struct Budget(u64);

/// `AggregationRule` of rbac/v1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default)]
    cluster_role_selectors: Option<Vec<Selector>>,
}

/// `LabelSelector` of meta/v1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<String>>,
}

// === impl Snapshot ===

impl Snapshot {
    /// The aggregated roles of the cluster whose rules are out of date.
    pub(super) fn stale(&self, cluster: &ClusterName) -> Vec<Stale> {
        self.stale_within(cluster, Budget(BUDGET))
    }

    fn stale_within(&self, cluster: &ClusterName, mut budget: Budget) -> Vec<Stale> {
        let all: BTreeMap<&str, &Role> =
            self.shared.iter().chain(&self.own).map(|(name, role)| (&**name, &**role)).collect();
        let sums = self.own.iter().filter_map(|(name, role)| {
            let sum = sum(role, name, &all, &mut budget).transpose()?;
            (sum.as_ref() != Ok(&role.rules)).then(|| Stale {
                cluster: cluster.clone(),
                name: name.clone(),
                uid: role.uid.clone(),
                resource_version: role.resource_version.clone(),
                sum,
            })
        });
        sums.collect()
    }
}

/// The rules that the role should have; `None` if it is not aggregated, or if its selectors are invalid.
fn sum(
    aggregated: &Role,
    own: &str,
    all: &BTreeMap<&str, &Role>,
    budget: &mut Budget,
) -> Result<Option<Vec<Rule>>, Excess> {
    let Some(aggregation) = &aggregated.aggregation else { return Ok(None) };
    budget.spend_bytes(aggregation.len())?;
    let Ok(rule) = serde_json::from_str::<AggregationRule>(aggregation) else { return Ok(None) };
    let (mut rules, mut seen) = (Vec::new(), HashSet::new());
    let (mut permissions, mut bytes) = (0_u64, 0);
    for selector in rule.cluster_role_selectors.into_iter().flatten() {
        let cost = selector.cost();
        let Some(selector) = selector.parse() else { return Ok(None) };
        for (&name, role) in all {
            budget.spend(cost)?;
            if name == own || !selector.matches(|key| role.labels.get(key).map(String::as_str)) {
                continue;
            }
            for rule in &role.rules {
                budget.spend_bytes(rule.text.len())?;
                if !seen.insert(&*rule.text) {
                    continue;
                }
                permissions = permissions.saturating_add(rule.permissions);
                bytes += rule.text.len() + 1;
                if permissions > MAX_PERMISSIONS {
                    return Err(Excess::Permissions);
                }
                if bytes > MAX_BYTES {
                    return Err(Excess::Bytes);
                }
                rules.push(rule.clone());
            }
        }
    }
    Ok(Some(rules))
}

// === impl Budget ===

impl Budget {
    fn spend(&mut self, cost: u64) -> Result<(), Excess> {
        self.0 = self.0.checked_sub(cost).ok_or(Excess::Work)?;
        Ok(())
    }

    fn spend_bytes(&mut self, bytes: usize) -> Result<(), Excess> {
        self.spend(bytes as u64 / 16 + 1)
    }
}

// === impl Selector ===

impl Selector {
    /// Like `LabelSelectorAsSelector` in apimachinery's meta/v1: an empty selector selects everything.
    fn parse(self) -> Option<LabelSelector> {
        let labels = self.match_labels.unwrap_or_default();
        let labels =
            LabelSelector::from_labels(labels.iter().map(|(key, value)| (key.as_str(), value.as_str()))).ok()?;
        self.match_expressions.into_iter().flatten().try_fold(labels, |selector, expression| {
            let values = expression.values.unwrap_or_default();
            let test = match &*expression.operator {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                _ => return None,
            };
            let requirement = Requirement::new(&expression.key, test).ok()?;
            Some(selector.and(requirement.to_string().parse().ok()?))
        })
    }

    /// The maximum number of comparisons to match a role.
    fn cost(&self) -> u64 {
        let labels = self.match_labels.as_ref().map_or(0, BTreeMap::len);
        let expressions = self.match_expressions.iter().flatten();
        let values = expressions.map(|expression| 1 + expression.values.as_ref().map_or(0, Vec::len));
        (1 + labels + values.sum::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::roles::Roles;
    use host_client::api::Change;

    fn ke() -> ClusterName {
        "ke".parse().unwrap()
    }

    fn put(roles: &Roles, name: &str, labels: &Value, aggregation: Option<&str>, rules: &Value) {
        let mut labels = labels.clone();
        labels["atoll.dev/virtual-cluster"] = json!("ke");
        let mut metadata = json!({"name": name, "labels": labels});
        if let Some(aggregation) = aggregation {
            metadata["annotations"] = json!({"atoll.dev/aggregation-rule": aggregation});
        }
        roles.take(&Change::Applied(json!({"metadata": metadata, "rules": rules})));
    }

    fn about(resource: &str) -> Value {
        json!([{"verbs": ["get"], "resources": [resource]}])
    }

    fn sums(roles: &Roles) -> Vec<(String, Result<Vec<Value>, Excess>)> {
        let values = |rules: Vec<Rule>| rules.iter().map(Rule::value).collect();
        let of = |stale: Stale| (stale.name, stale.sum.map(values));
        roles.snapshot(&ke()).unwrap().stale(&ke()).into_iter().map(of).collect()
    }

    fn resources(roles: &Roles) -> Vec<(String, Vec<String>)> {
        let resource = |rule: Value| rule["resources"][0].as_str().unwrap_or_default().to_owned();
        sums(roles).into_iter().map(|(name, sum)| (name, sum.unwrap().into_iter().map(resource).collect())).collect()
    }

    #[test]
    fn a_role_aggregates_the_roles_that_it_selects_in_its_cluster() {
        let roles = Roles::default();
        let selectors = r#"{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}},{"matchExpressions":[{"key":"c","operator":"Exists"}]}]}"#;
        put(&roles, "vc:ke:sum", &json!({"parked.atoll.dev/a": "b"}), Some(selectors), &json!([]));
        assert!(resources(&roles).is_empty());
        put(&roles, "vc:ke:two", &json!({"parked.atoll.dev/a": "b"}), None, &about("pods"));
        put(
            &roles,
            "vc:ke:one",
            &json!({"parked.atoll.dev/c": "", "parked.atoll.dev/a": "b"}),
            None,
            &about("secrets"),
        );
        put(&roles, "vc:ke:not", &json!({"parked.atoll.dev/a": "c"}), None, &about("nodes"));
        put(&roles, "vc:hz:other", &json!({"parked.atoll.dev/a": "b"}), None, &about("services"));
        let shared = json!({"name": "view", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", "c": "d"}});
        roles.take(&Change::Applied(json!({"metadata": shared, "rules": [{"resources": ["events"]}]})));
        let expected = ["secrets", "pods", "events"].map(str::to_owned).to_vec();
        assert_eq!(resources(&roles), [("sum".to_owned(), expected)]);
        assert!(roles.snapshot(&"hz".parse().unwrap()).is_none());
    }

    #[test]
    fn an_invalid_object_changes_nothing() {
        let roles = Roles::default();
        for rule in ["", "{", r#"{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"Like"}]}]}"#] {
            put(&roles, "vc:ke:sum", &json!({}), Some(rule), &about("pods"));
            assert!(resources(&roles).is_empty(), "{rule}");
        }
        put(&roles, "vc:ke:sum", &json!({}), Some("{}"), &about("pods"));
        assert_eq!(resources(&roles), [("sum".to_owned(), Vec::new())]);
    }

    #[test]
    fn aggregated_rules_are_limited() {
        let everything = r#"{"clusterRoleSelectors":[{}]}"#;
        let sum_of = |rules: &dyn Fn(usize) -> Value| {
            let roles = Roles::default();
            put(&roles, "vc:ke:sum", &json!({}), Some(everything), &json!([]));
            for number in 0..3 {
                put(&roles, &format!("vc:ke:{number}"), &json!({}), None, &rules(number));
            }
            sums(&roles).pop().unwrap().1.map(|rules| rules.len())
        };
        let each = |number: usize, count: usize| -> Value {
            (0..count)
                .map(|of| json!({"verbs": ["get"], "apiGroups": [""], "resources": [format!("{number}-{of}")]}))
                .collect()
        };
        assert_eq!(sum_of(&|number| each(number, 3333)), Ok(9999));
        // Duplicates count once.
        assert_eq!(sum_of(&|_| each(0, 5000)), Ok(5000));
        assert_eq!(sum_of(&|number| each(number, 3334)), Err(Excess::Permissions));
        assert_eq!(
            sum_of(
                &|number| json!([{"verbs": vec![number.to_string(); 100], "apiGroups": [""], "resources": vec!["a"; 34]}])
            ),
            Err(Excess::Permissions)
        );
        let long = "x".repeat(400 << 10);
        assert_eq!(sum_of(&|number| json!([{"verbs": [number.to_string()], "resources": [long]}])), Err(Excess::Bytes));
    }

    #[test]
    fn the_work_for_one_cluster_is_bounded() {
        let roles = Roles::default();
        for number in 0..10 {
            put(&roles, &format!("vc:ke:z{number}"), &json!({}), None, &json!([]));
        }
        let labels: serde_json::Map<_, _> = (0..100).map(|number| (number.to_string(), json!("a"))).collect();
        let costly = json!({"clusterRoleSelectors": [{"matchLabels": labels}]}).to_string();
        put(&roles, "vc:ke:cheap", &json!({}), Some(r#"{"clusterRoleSelectors":[{}]}"#), &about("pods"));
        put(&roles, "vc:ke:costly", &json!({}), Some(&costly), &about("secrets"));
        let stale = |budget| {
            let stale = roles.snapshot(&ke()).unwrap().stale_within(&ke(), Budget(budget)).into_iter();
            stale.map(|stale| (stale.name, stale.sum.map(|rules| rules.len()))).collect::<Vec<_>>()
        };
        let (cheap, costly) = ("cheap".to_owned(), "costly".to_owned());
        assert_eq!(stale(2000), [(cheap.clone(), Ok(1)), (costly.clone(), Ok(0))]);
        assert_eq!(stale(1000), [(cheap.clone(), Ok(1)), (costly.clone(), Err(Excess::Work))]);
        assert_eq!(stale(1), [(cheap, Err(Excess::Work)), (costly, Err(Excess::Work))]);
    }
}
