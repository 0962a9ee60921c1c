//! The cache of the host's ClusterRoles that virtual clusters see: the default roles of its API server, which all
//! virtual clusters share, and the roles of virtual clusters.
//!
//! Some default roles are aggregated: `admin`, `edit`, `view`. A virtual cluster's own roles must be aggregated only
//! within that cluster, so each cluster has a copy of them.
//!
//! One watch serves all clusters. What is *not* here: the check whether a client may write a role (`exchange` in the
//! agent).
//!
//! Reading order: [`Roles`], `sum` (computes aggregated rules), [`aggregation`] (writes them to the host),
//! [`copies`], [`room`] (the quota).

pub mod aggregation;
pub mod copies;
pub mod room;
mod sum;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use rewrite::ClusterName;
use rewrite::mapping::SharedRoles;
use rewrite::name::CLUSTER_LABEL;
use rewrite::parked::{AUTO_UPDATE, unparked};
use rewrite::request::{AGGREGATION_ANNOTATION, RuleLengths};
use serde_json::Value;
use tokio::sync::watch;

use host_client::api::Change;
use host_client::api::Following;
use sum::Snapshot;

/// The path of all ClusterRoles.
pub const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// The label, and its value, of the `rbac.authorization.k8s.io` objects that an API server creates and repairs itself
/// (`bootstrappolicy`).
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

/// The cache of ClusterRoles.
#[derive(Debug, Default)]
pub struct Roles {
    /// Locked only to look up or copy references.
    known: Mutex<Known>,
    /// The names of the shared roles, which every request reads.
    names: ArcSwap<SharedRoles>,
    synced: watch::Sender<bool>,
    /// The number of changes.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    shared: BTreeMap<String, Arc<Role>>,
    /// The aggregated roles of the API server. Every virtual cluster has a copy of them.
    copied: BTreeMap<String, Arc<Role>>,
    own: HashMap<ClusterName, Own>,
    /// The number of changes of shared roles.
    changes: u64,
}

/// The roles of a virtual cluster.
#[derive(Debug, Default)]
struct Own {
    /// By virtual name.
    roles: BTreeMap<String, Arc<Role>>,
    /// The number of their changes.
    changes: u64,
}

/// The version of the roles that a virtual cluster sees: the number of their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    shared: u64,
    own: u64,
}

/// The known state of a ClusterRole.
#[derive(Debug, PartialEq)]
pub struct Role {
    /// The labels that clients see.
    pub labels: BTreeMap<String, String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The `aggregationRule`, as JSON.
    pub aggregation: Option<String>,
    /// The annotation by which an API server decides whether to repair its own role.
    pub auto_update: Option<String>,
    uid: String,
    resource_version: String,
    /// The memory that all this uses.
    pub weight: usize,
}

/// A rule of a ClusterRole. Clients can write many, so rules are kept as text, which needs a fraction of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule, as JSON.
    text: Arc<str>,
    /// The number of [permissions](RuleLengths::permissions) that it grants.
    permissions: u64,
}

/// The owner of a ClusterRole.
#[derive(Debug, PartialEq)]
enum Owner {
    Shared(String),
    Copied(String),
    Cluster(ClusterName, String),
}

// === impl Roles ===

impl Roles {
    /// Keeps the cache up to date for ever.
    pub async fn follow(&self, mut following: impl Following) {
        loop {
            self.take(&following.next().await);
        }
    }

    /// The current names of the shared roles.
    pub fn shared(&self) -> Arc<SharedRoles> {
        self.names.load_full()
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Whether a role of a virtual cluster is aggregated.
    pub fn aggregates(&self, cluster: &ClusterName, name: &str) -> bool {
        let known = self.lock();
        let role = known.own.get(cluster).and_then(|own| own.roles.get(name));
        role.is_some_and(|role| role.aggregation.is_some())
    }

    /// The version of the roles that a virtual cluster sees; `None` if it has no roles of its own.
    fn version(&self, cluster: &ClusterName) -> Option<Version> {
        self.lock().version(cluster)
    }

    /// The roles that a virtual cluster sees; `None` if it has no roles of its own.
    fn snapshot(&self, cluster: &ClusterName) -> Option<Snapshot> {
        let of = |roles: &BTreeMap<String, Arc<Role>>| {
            roles.iter().map(|(name, role)| (name.clone(), Arc::clone(role))).collect()
        };
        let known = self.lock();
        let version = known.version(cluster)?;
        Some(Snapshot { version, shared: of(&known.shared), own: of(&known.own.get(cluster)?.roles) })
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the sender is borrowed from self");
    }

    fn take(&self, change: &Change) {
        match change {
            Change::Synced => drop(self.synced.send_replace(true)),
            Change::Applied(object) => self.put(object, Some(Arc::new(Role::of(object)))),
            Change::Deleted(object) => self.put(object, None),
        }
    }

    fn put(&self, object: &Value, role: Option<Arc<Role>>) {
        let Some(name) = object["metadata"]["name"].as_str() else { return };
        let owner = owner(object, name);
        let mut known = self.lock();
        if !matches!(owner, Some(Owner::Shared(_))) && known.shared.remove(name).is_some() {
            self.rename(&mut known);
        }
        if !matches!(owner, Some(Owner::Copied(_))) {
            known.copied.remove(name);
        }
        match owner {
            None => return,
            Some(Owner::Shared(name)) => {
                set(&mut known.shared, name, role);
                self.rename(&mut known);
            }
            Some(Owner::Copied(name)) => set(&mut known.copied, name, role),
            Some(Owner::Cluster(cluster, name)) => {
                let own = known.own.entry(cluster).or_default();
                set(&mut own.roles, name, role);
                own.changes += 1;
            }
        }
        drop(known);
        self.changed.send_modify(|changes| *changes += 1);
    }

    /// Records a change of shared roles.
    fn rename(&self, known: &mut Known) {
        known.changes += 1;
        let names = self.names.load();
        if names.len() != known.shared.len() || !known.shared.keys().all(|name| names.contains(name.as_bytes())) {
            let names = known.shared.keys().map(|name| Bytes::copy_from_slice(name.as_bytes())).collect();
            self.names.store(Arc::new(names));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Known ===

impl Known {
    fn version(&self, cluster: &ClusterName) -> Option<Version> {
        self.own.get(cluster).map(|own| Version { shared: self.changes, own: own.changes })
    }
}

// === impl Role ===

impl Role {
    /// The rules of a ClusterRole as the host stores it.
    pub fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| {
            let key = unparked(key).map_or_else(|| key.clone(), String::from);
            Some((key, value.as_str()?.to_owned()))
        });
        let role = Self {
            labels: labels.collect(),
            rules: object["rules"].as_array().into_iter().flatten().map(Rule::of).collect(),
            aggregation: match &object["aggregationRule"] {
                Value::Null => metadata["annotations"][AGGREGATION_ANNOTATION].as_str().map(str::to_owned),
                rule => Some(rule.to_string()),
            },
            auto_update: metadata["annotations"][AUTO_UPDATE].as_str().map(str::to_owned),
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            resource_version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            weight: 0,
        };
        Self { weight: role.weigh(), ..role }
    }
}

// === impl Rule ===

impl Rule {
    fn of(rule: &Value) -> Self {
        let length = |key: &str| rule[key].as_array().map_or(0, Vec::len);
        let lengths = RuleLengths {
            verbs: length("verbs"),
            groups: length("apiGroups"),
            resources: length("resources"),
            names: length("resourceNames"),
            paths: length("nonResourceURLs"),
        };
        Self { text: rule.to_string().into(), permissions: lengths.permissions() }
    }

    /// The rule as JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).expect("the text was made of a value")
    }
}

fn set(roles: &mut BTreeMap<String, Arc<Role>>, name: String, role: Option<Arc<Role>>) {
    match role {
        Some(role) => roles.insert(name, role),
        None => roles.remove(&name),
    };
}

/// The owner. A role of a virtual cluster has both its label and a name with its prefix.
fn owner(object: &Value, name: &str) -> Option<Owner> {
    let labels = &object["metadata"]["labels"];
    if labels[BOOTSTRAPPING.0] == BOOTSTRAPPING.1 {
        let shared = object["aggregationRule"].is_null();
        return Some(if shared { Owner::Shared(name.to_owned()) } else { Owner::Copied(name.to_owned()) });
    }
    let cluster = ClusterName::new(labels[CLUSTER_LABEL].as_str()?).ok()?;
    let own = name.strip_prefix(&format!("vc:{cluster}:"))?.to_owned();
    Some(Owner::Cluster(cluster, own))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl Roles {
        /// The roles of a host that has exactly these.
        pub fn with(roles: impl IntoIterator<Item = Value>) -> Arc<Self> {
            let known = Self::default();
            for change in roles.into_iter().map(Change::Applied).chain([Change::Synced]) {
                known.take(&change);
            }
            Arc::new(known)
        }
    }

    fn role(name: &str, labels: &Value) -> Change {
        Change::Applied(json!({"metadata": {"name": name, "labels": labels}, "rules": []}))
    }

    #[tokio::test]
    async fn shared_roles_come_and_go() {
        let roles = Roles::default();
        roles.take(&role("view", &json!({"kubernetes.io/bootstrapping": "rbac-defaults"})));
        roles.take(&role("operators", &json!({"a": "b"})));
        roles.take(&role("vc:ke:a", &json!({"atoll.dev/virtual-cluster": "ke", "parked.atoll.dev/a": "b"})));
        roles.take(&role("vc:ke:b", &json!({"atoll.dev/virtual-cluster": "hz"})));
        roles.take(&Change::Synced);
        roles.synced().await;
        assert_eq!(*roles.shared(), SharedRoles::from([Bytes::from("view")]));
        let own = roles.lock().own.remove(&"ke".parse::<ClusterName>().unwrap()).unwrap();
        assert_eq!((own.roles.len(), own.roles["a"].labels["a"].as_str()), (1, "b"));
        // The operator has taken it over.
        roles.take(&role("view", &json!({})));
        assert!(roles.shared().is_empty());
    }
}
