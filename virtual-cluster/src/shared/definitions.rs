//! The CustomResourceDefinitions of each virtual cluster.
//!
//! Every virtual cluster sees the operator's definitions. A definition that belongs to virtual clusters alone exists
//! only for the clusters that created it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_wire::gvr::GroupResource;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::HostObject;
use host_client::api::{Api, Change, Following, Reflector, Selection};

/// The path of all definitions.
pub const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const GROUP: &str = "/apis/apiextensions.k8s.io/v1";

/// The interval between checks whether a host without CustomResourceDefinitions serves them now.
const UNSERVED: Duration = Duration::from_secs(60);
/// The interval of retries if the host does not respond.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The cache of definitions: which virtual clusters have them, and in which version the host stores their objects.
#[derive(Debug, Default)]
pub struct Definitions {
    by_name: Mutex<DefinitionsByName>,
    synced: watch::Sender<bool>,
    /// The number of changes.
    changes: watch::Sender<u64>,
}

/// The resources that one virtual cluster does not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The resources, as `resource.group`.
    pub resources: BTreeSet<String>,
    /// The groups that have no other resources.
    pub groups: BTreeSet<String>,
}

/// By name, which is `resource.group`.
type DefinitionsByName = HashMap<String, Definition>;

#[derive(Debug)]
struct Definition {
    uid: Arc<str>,
    /// The virtual clusters that have it; `None` if it belongs to the operator, so that all have it.
    owners: Option<BTreeSet<String>>,
    /// Whether a virtual cluster created it, but it belongs to the operator by now.
    is_claimed: bool,
    storage: Storage,
}

/// How the host stores the objects of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The version in which it stores them, if it serves this version.
    pub version: Option<Arc<str>>,
    /// The specification of the definition.
    pub revision: Revision,
    /// When this agent learnt of the definition.
    pub defined_at: Instant,
    /// When this agent learnt of this revision.
    pub revised_at: Instant,
}

/// Identifies a specification of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The `metadata.uid` of the definition.
    pub uid: Arc<str>,
    /// Its `metadata.generation`, which changes with its specification.
    pub generation: i64,
}

/// The used fields of a `CustomResourceDefinition` (apiextensions/v1).
#[derive(Debug, Deserialize)]
pub struct CustomResourceDefinition {
    metadata: Value,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
}

// === impl Definitions ===

impl Definitions {
    /// Keeps the cache up to date forever. If the host does not serve definitions, the cache is empty.
    pub async fn keep(&self, api: Api) {
        loop {
            match api.get(GROUP).await {
                Ok(_) => {
                    return self.follow(Reflector::new(&api, PATH, Selection::default())).await;
                }
                Err(error) if error.is_not_found() => {
                    self.synced.send_replace(true);
                    sleep(UNSERVED).await;
                }
                Err(error) => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        "definitions of custom resources are not known yet"
                    );
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Records all changes, forever.
    pub async fn follow(&self, mut following: impl Following<CustomResourceDefinition>) {
        loop {
            self.take(&following.next().await);
        }
    }

    /// Records a change on the host.
    pub fn take(&self, change: &Change<CustomResourceDefinition>) {
        match change {
            Change::Synced => drop(self.synced.send_replace(true)),
            Change::Applied(defined) => self.learn(defined),
            Change::Deleted(defined) => drop(self.lock().remove(defined.name())),
        }
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    fn learn(&self, defined: &CustomResourceDefinition) {
        let definition = HostObject::new(json!({"metadata": defined.metadata}));
        let is_of_clusters = definition.is_of_clusters();
        let owners = is_of_clusters.then(|| definition.attached().owners().map(str::to_owned).collect());
        let is_claimed = definition.is_marked() && !is_of_clusters;
        let uid: Arc<str> = definition.text("uid").into();
        let mut storage = defined.storage();
        let mut definitions = self.lock();
        let known = definitions.get(defined.name()).map(|known| &known.storage);
        if let Some(known) = known.filter(|known| known.revision.uid == storage.revision.uid) {
            storage.defined_at = known.defined_at;
            if known.revision == storage.revision {
                storage.revised_at = known.revised_at;
            }
        }
        definitions.insert(defined.name().to_owned(), Definition { uid, owners, is_claimed, storage });
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the sender is borrowed from self");
    }

    /// Changes whenever a definition changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A number that changes whenever a definition changes.
    pub fn generation(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Whether the definition with this name belongs to virtual clusters alone; `None` if no such definition is known.
    pub fn is_of_clusters(&self, name: &str) -> Option<bool> {
        self.lock().get(name).map(|definition| definition.owners.is_some())
    }

    /// Definitions that virtual clusters created and that belong to the operator by now.
    pub fn claimed(&self) -> Vec<String> {
        let definitions = self.lock();
        definitions.iter().filter(|(_, definition)| definition.is_claimed).map(|(name, _)| name.clone()).collect()
    }

    /// The uid of the definition with this name, if there is one.
    pub fn uid(&self, name: &str) -> Option<Arc<str>> {
        self.lock().get(name).map(|definition| Arc::clone(&definition.uid))
    }

    /// How the host stores the objects of the definition with this name, if there is one.
    pub fn storage(&self, name: &str) -> Option<Storage> {
        self.lock().get(name).map(|definition| definition.storage.clone())
    }

    /// Whether the resource exists only for other virtual clusters.
    pub fn hide(&self, resource: GroupResource<'_>, cluster: &str) -> bool {
        let name = format!("{}.{}", resource.resource, resource.group);
        self.lock().get(&name).is_some_and(|definition| definition.is_foreign(cluster))
    }

    /// All definitions that only other virtual clusters have, and those of the operator that are `unserved`.
    pub fn hidden_from(&self, cluster: &str, unserved: &BTreeSet<String>) -> Hidden {
        let mut hidden = Hidden::default();
        let mut seen = BTreeSet::new();
        for (name, definition) in &*self.lock() {
            let group = name.split_once('.').map_or("", |(_, group)| group).to_owned();
            if definition.is_foreign(cluster) || unserved.contains(name) {
                hidden.resources.insert(name.clone());
                hidden.groups.insert(group);
            } else {
                seen.insert(group);
            }
        }
        hidden.groups.retain(|group| !seen.contains(group));
        hidden
    }

    /// The resources of a group whose definitions belong to other virtual clusters only.
    pub fn hidden_in(&self, group: &str, cluster: &str) -> BTreeSet<String> {
        let definitions = self.lock();
        let hidden = definitions.iter().filter(|(_, definition)| definition.is_foreign(cluster));
        let named = hidden.filter_map(|(name, _)| name.split_once('.')).filter(|(_, of)| *of == group);
        named.map(|(resource, _)| resource.to_owned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, DefinitionsByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Definition ===

impl Definition {
    /// Whether only other virtual clusters have it.
    fn is_foreign(&self, cluster: &str) -> bool {
        self.owners.as_ref().is_some_and(|owners| !owners.contains(cluster))
    }
}

// === impl Revision ===

impl Revision {
    /// That of a definition with this metadata.
    pub fn of(metadata: &Value) -> Self {
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
        }
    }
}

// === impl CustomResourceDefinition ===

impl CustomResourceDefinition {
    fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap_or_default()
    }

    fn storage(&self) -> Storage {
        let stored = self.spec.versions.iter().find(|version| version.storage && version.served);
        Storage {
            version: stored.map(|version| version.name.as_str().into()),
            revision: Revision::of(&self.metadata),
            defined_at: Instant::now(),
            revised_at: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(definitions: &Definitions, object: Value) {
        definitions.learn(&serde_json::from_value(object).unwrap());
    }

    #[test]
    fn a_cluster_without_the_definition_lacks_its_resources() {
        let definitions = Definitions::default();
        let gears = GroupResource { group: "example.com", resource: "gears" };
        let had = |annotations: Value| {
            let labels = json!({"atoll.dev/shared": ""});
            json!({"metadata": {"name": "gears.example.com", "labels": labels, "annotations": annotations}})
        };
        assert!(!definitions.hide(gears, "ke"));
        learn(&definitions, had(json!({"overlay.atoll.dev/hz": "{}"})));
        assert!(definitions.hide(gears, "ke") && !definitions.hide(gears, "hz"));
        let hidden = definitions.hidden_from("ke", &BTreeSet::new());
        assert!(hidden.resources.contains("gears.example.com") && hidden.groups.contains("example.com"));
        learn(&definitions, json!({"metadata": {"name": "wheels.example.com"}}));
        let hidden = definitions.hidden_from("ke", &BTreeSet::new());
        assert!(hidden.resources.contains("gears.example.com") && hidden.groups.is_empty());
        let hidden = definitions.hidden_from("ke", &["wheels.example.com".to_owned()].into());
        assert!(hidden.resources.contains("wheels.example.com") && hidden.groups.contains("example.com"));
        learn(&definitions, had(json!({"overlay.atoll.dev/hz": "{}", "overlay.atoll.dev/ke": "{}"})));
        assert!(!definitions.hide(gears, "ke") && definitions.hidden_from("ke", &BTreeSet::new()) == Hidden::default());
        assert_eq!(definitions.is_of_clusters("gears.example.com"), Some(true));
        assert_eq!(definitions.is_of_clusters("cogs.example.com"), None);
        // The operator applies it too.
        let mut claimed = had(json!({"overlay.atoll.dev/hz": "{}"}));
        claimed["metadata"]["managedFields"] = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]);
        learn(&definitions, claimed);
        assert_eq!(definitions.is_of_clusters("gears.example.com"), Some(false));
        assert_eq!(definitions.claimed(), ["gears.example.com"]);
        assert!(!definitions.hide(gears, "xx"));
        learn(&definitions, json!({"metadata": {"name": "gears.example.com"}}));
        assert!(!definitions.hide(gears, "xx") && definitions.claimed().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_storage_is_known() {
        let definitions = Definitions::default();
        let gears = |storage: &str, generation: i64, uid: &str| {
            let versions = ["v1", "v2"].map(|name| json!({"name": name, "served": true, "storage": name == storage}));
            let metadata = json!({"name": "gears.example.com", "uid": uid, "generation": generation});
            json!({"metadata": metadata, "spec": {"versions": versions}})
        };
        let seen = || definitions.storage("gears.example.com");
        let begun = Instant::now();
        let after = |seconds: u64| begun + Duration::from_secs(seconds);
        assert_eq!(seen(), None);
        for (storage, generation, uid, defined, revised) in [
            ("v1", 1, "a", 0, 0),
            ("v1", 1, "a", 0, 0),
            ("v2", 2, "a", 0, 2),
            ("v2", 2, "b", 3, 3),
            ("v2", 2, "b", 3, 3),
        ] {
            learn(&definitions, gears(storage, generation, uid));
            let revision = Revision { uid: uid.into(), generation };
            let version = Some(storage.into());
            let (defined_at, revised_at) = (after(defined), after(revised));
            assert_eq!(seen(), Some(Storage { version, revision, defined_at, revised_at }));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        definitions.take(&Change::Deleted(serde_json::from_value(gears("v2", 2, "b")).unwrap()));
        assert_eq!(seen(), None);
    }
}
