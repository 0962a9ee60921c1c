//! A flow of its own for each virtual cluster, in the host's API Priority and Fairness (KEP-1040).
//!
//! An API server serves flows in turn. Without these objects, each *user* of a virtual cluster is a flow, in a priority
//! level that the users of all virtual clusters and of the operator share: a virtual cluster with a hundred users would
//! get a hundred turns. So each virtual cluster has a FlowSchema without a distinguisher, which makes all of its requests
//! through the endpoint one flow.
//!
//! The operator may change these objects, for example to give a virtual cluster another priority level: the agent
//! creates them, and never writes existing ones. The root namespace owns the FlowSchema, so the host's garbage collector
//! deletes both together. A virtual cluster is also served without its FlowSchema.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host_client::api::{ApiError, HostApi, Selection};
use rewrite::{ClusterName, HostNamespace};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::mirrors::Progress;
use super::reconcile_error::{ReconcileError, is_already_there};
use crate::namespaces::Root;

/// Served since Kubernetes 1.29.
const GROUP_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// The priority level of all virtual clusters of a host.
pub const PRIORITY_LEVEL: &str = "atoll-virtual-clusters";
/// The prefix of the FlowSchemas.
const PREFIX: &str = "atoll-";
/// Before the FlowSchema `service-accounts` (9000), and after those of the control plane. The lowest number wins.
const PRECEDENCE: u32 = 8000;
/// The time after which the agent tries again if the host refuses to create the objects.
const RETRY_INTERVAL: Duration = Duration::from_secs(600);

/// Creates the objects.
#[derive(Debug, Default)]
pub(super) struct FlowSchemas {
    first: Mutex<First>,
    /// Whether the priority level exists.
    has_level: AtomicBool,
    refused: Mutex<Option<Refused>>,
}

/// What is known when a virtual cluster is looked at for the first time.
#[derive(Debug, Default)]
struct First {
    /// The FlowSchemas that the first list had.
    listed: HashMap<String, Listed>,
    /// Whether it had all of them.
    is_complete: bool,
    /// The names that were looked at. What is known about them may have changed.
    seen: HashSet<String>,
}

/// The host refuses: the agent does not repeat the attempt for each virtual cluster.
#[derive(Debug)]
struct Refused {
    until: Instant,
    /// Why.
    message: String,
}

/// A FlowSchema on the host.
#[derive(Debug, Deserialize)]
struct Listed {
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Debug, Deserialize)]
struct Owner {
    name: String,
    uid: String,
}

/// What the first list says about a FlowSchema.
enum Look {
    Listed(Listed),
    Absent,
    /// The list has failed, or what it says may have changed.
    Unknown,
}

// === impl FlowSchemas ===

impl FlowSchemas {
    /// Lists what is there. If that fails, every FlowSchema is read later.
    pub(super) async fn list(&self, api: &impl HostApi) {
        let (path, selection) = (collection("flowschemas"), Selection::default().metadata());
        let mut pages = api.pages(&path, &selection);
        loop {
            match pages.next::<Listed>().await {
                Ok(Some(page)) => {
                    let schemas = page.into_iter().map(|schema| (schema.metadata.name.clone(), schema));
                    lock(&self.first).listed.extend(schemas.filter(|(name, _)| name.starts_with(PREFIX)));
                }
                Ok(None) => return lock(&self.first).is_complete = true,
                Err(error) => return debug!(error = &error as &dyn std::error::Error, "cannot list FlowSchemas"),
            }
        }
    }

    /// Creates what is missing for the cluster with this root namespace.
    pub(super) async fn ensure(
        &self,
        api: &impl HostApi,
        cluster: &ClusterName,
        root: &Root,
    ) -> Result<Progress, ReconcileError> {
        let (schemas, name) = (collection("flowschemas"), format!("{PREFIX}{cluster}"));
        let look = lock(&self.first).look_at(&name);
        let found = match (look, self.pause()) {
            (Look::Listed(found), _) => Some(found),
            (_, Some(pause)) => return Ok(Progress::Later(pause)),
            (Look::Absent, None) => None,
            (Look::Unknown, None) => match api.read(&format!("{schemas}/{name}")).await {
                Ok(found) => Some(found),
                Err(error) if error.is_not_found() => None,
                Err(error) if is_refusal(&error) => return Ok(self.refuse(&error)),
                Err(error) => return Err(error.into()),
            },
        };
        match found {
            Some(found) if found.is_of_former(cluster, root) => return Err(ReconcileError::Former(name)),
            Some(_) => return Ok(Progress::Done),
            None => {}
        }
        let level = (!self.has_level.load(Ordering::Relaxed))
            .then(|| (collection("prioritylevelconfigurations"), priority_level()));
        for (collection, object) in level.into_iter().chain([(schemas, flow_schema(cluster, root))]) {
            match api.create(&collection, &object).await {
                Ok(_) => {}
                Err(error) if is_already_there(&error) => {}
                Err(error) if is_refusal(&error) => return Ok(self.refuse(&error)),
                Err(error) => return Err(error.into()),
            }
        }
        self.has_level.store(true, Ordering::Relaxed);
        Ok(Progress::Done)
    }

    fn refuse(&self, error: &ApiError) -> Progress {
        let (why, message): (&dyn std::error::Error, _) = (error, error.to_string());
        let consequence = "virtual clusters have no flows of their own at the host; see \"Flows\" in docs/limits.md";
        let mut refused = lock(&self.refused);
        if refused.as_ref().is_some_and(|refused| refused.message == message) {
            debug!(error = why, "the host still refuses FlowSchemas");
        } else if error.is_not_found() {
            info!(
                error = why,
                "the host does not serve flowcontrol.apiserver.k8s.io/v1 (Kubernetes 1.29 and newer do): {consequence}"
            );
        } else {
            warn!(error = why, "the host refuses to create FlowSchemas: {consequence}");
        }
        *refused = Some(Refused { until: Instant::now() + RETRY_INTERVAL, message });
        Progress::Later(RETRY_INTERVAL)
    }

    /// How long the agent does not try.
    fn pause(&self) -> Option<Duration> {
        let until = lock(&self.refused).as_ref()?.until;
        Some(until.duration_since(Instant::now())).filter(|pause| !pause.is_zero())
    }
}

// === impl First ===

impl First {
    fn look_at(&mut self, name: &str) -> Look {
        let is_first = self.seen.insert(name.to_owned());
        match self.listed.remove(name) {
            Some(listed) => Look::Listed(listed),
            None if is_first && self.is_complete => Look::Absent,
            None => Look::Unknown,
        }
    }
}

// === impl Listed ===

impl Listed {
    /// Whether the host will delete it, because its owner is a former root namespace of the cluster.
    fn is_of_former(&self, cluster: &ClusterName, root: &Root) -> bool {
        let name = HostNamespace::root(cluster);
        self.metadata.owner_references.iter().any(|owner| owner.name == name.as_str() && *owner.uid != *root.uid)
    }
}

/// The virtual cluster of a FlowSchema: that of the root namespace which owns it.
pub(crate) fn flow_schema_of(schema: &Value) -> Option<ClusterName> {
    let metadata = &schema["metadata"];
    let cluster = ClusterName::new(metadata["name"].as_str()?.strip_prefix(PREFIX)?).ok()?;
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    owners.any(|owner| owner["name"] == HostNamespace::root(&cluster).as_str()).then_some(cluster)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right is missing, an admission policy denies the object, or the host is too old.
fn is_refusal(error: &ApiError) -> bool {
    error.status().is_some_and(|status| matches!(status.code, 400..=499 if !matches!(status.code, 409 | 429)))
}

fn collection(resource: &str) -> String {
    format!("/apis/{GROUP_VERSION}/{resource}")
}

/// Between `global-default` (20 shares), to which users of virtual clusters would belong otherwise, and `workload-low` (100
/// shares), to which service accounts would belong. It lends seats that it does not need, and borrows those of others.
fn priority_level() -> Value {
    json!({
        "apiVersion": GROUP_VERSION, "kind": "PriorityLevelConfiguration",
        "metadata": {"name": PRIORITY_LEVEL},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 50, "lendablePercent": 50,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}},
        }},
    })
}

/// Only requests through the endpoint have these groups.
fn flow_schema(cluster: &ClusterName, root: &Root) -> Value {
    let group = |group| json!({"kind": "Group", "group": {"name": format!("vc:{cluster}:system:{group}")}});
    json!({
        "apiVersion": GROUP_VERSION, "kind": "FlowSchema",
        "metadata": {
            "name": format!("{PREFIX}{cluster}"),
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Namespace",
                "name": HostNamespace::root(cluster).as_str(), "uid": &*root.uid,
            }],
        },
        "spec": {
            "priorityLevelConfiguration": {"name": PRIORITY_LEVEL},
            "matchingPrecedence": PRECEDENCE,
            "rules": [{
                "subjects": [group("authenticated"), group("unauthenticated")],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
                }],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeHost;
    use super::*;
    use crate::namespaces::{Annotations, Phase};

    fn schema_at(cluster: &str) -> String {
        format!("{}/atoll-{cluster}", collection("flowschemas"))
    }

    fn level_at() -> String {
        format!("{}/{PRIORITY_LEVEL}", collection("prioritylevelconfigurations"))
    }

    fn root(uid: &str) -> Root {
        Root { uid: uid.into(), phase: Phase::Active, annotations: Annotations::default() }
    }

    #[tokio::test]
    async fn each_cluster_is_one_flow_and_nothing_is_written_twice() {
        let (host, flows) = (FakeHost::new(), FlowSchemas::default());
        let cluster: ClusterName = "ke".parse().unwrap();
        flows.ensure(&host, &cluster, &root("u")).await.unwrap();
        let schema = host.lock().objects[&schema_at("ke")].clone();
        assert_eq!(schema["spec"]["rules"][0]["subjects"][0]["group"]["name"], "vc:ke:system:authenticated");
        assert_eq!(schema["spec"]["distinguisherMethod"], Value::Null);
        let owner = &schema["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["name"], &owner["uid"]), (&json!("atoll-root-ke"), &json!("u")));
        assert_eq!(schema["spec"]["priorityLevelConfiguration"]["name"], PRIORITY_LEVEL);
        // The operator's changes stay.
        host.edit(&schema_at("ke"), |schema| schema["spec"]["matchingPrecedence"] = json!(7000));
        host.edit(&level_at(), |level| level["spec"]["limited"]["nominalConcurrencyShares"] = json!(5));
        let before = host.lock().objects.clone();
        flows.ensure(&host, &cluster, &root("u")).await.unwrap();
        assert_eq!(host.lock().objects, before);
        flows.ensure(&host, &"other".parse().unwrap(), &root("v")).await.unwrap();
        assert_eq!(host.lock().objects[&level_at()], before[&level_at()]);
        assert!(host.lock().objects.contains_key(&schema_at("other")));
    }

    #[tokio::test]
    async fn the_first_list_saves_requests() {
        let (host, flows) = (FakeHost::new(), FlowSchemas::default());
        flows.list(&host).await;
        host.lock().requests.clear();
        for cluster in ["one", "two"] {
            flows.ensure(&host, &cluster.parse().unwrap(), &root("u")).await.unwrap();
        }
        let requests = std::mem::take(&mut host.lock().requests);
        assert_eq!(requests.len(), 3, "one priority level and two FlowSchemas: {requests:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_refuses_is_asked_again_later() {
        let (host, flows) = (FakeHost::new(), FlowSchemas::default());
        let (one, two): (ClusterName, ClusterName) = ("one".parse().unwrap(), "two".parse().unwrap());
        host.lock().flows_are_forbidden = true;
        assert_eq!(flows.ensure(&host, &one, &root("u")).await.unwrap(), Progress::Later(RETRY_INTERVAL));
        host.lock().flows_are_forbidden = false;
        assert_eq!(flows.ensure(&host, &two, &root("u")).await.unwrap(), Progress::Later(RETRY_INTERVAL));
        assert!(host.lock().objects.is_empty(), "one refusal is enough for a while");
        tokio::time::advance(RETRY_INTERVAL).await;
        assert_eq!(flows.ensure(&host, &two, &root("u")).await.unwrap(), Progress::Done);
        assert!(host.lock().objects.contains_key(&schema_at("two")));
    }

    /// The host deletes it some time after its owner.
    #[tokio::test]
    async fn the_flow_schema_of_a_former_root_namespace_is_replaced() {
        for is_listed in [false, true] {
            let (host, flows) = (FakeHost::new(), FlowSchemas::default());
            let cluster: ClusterName = "ke".parse().unwrap();
            flows.ensure(&host, &cluster, &root("old")).await.unwrap();
            if is_listed {
                flows.list(&host).await;
            }
            for _ in 0..2 {
                let former = flows.ensure(&host, &cluster, &root("new")).await;
                assert!(matches!(former, Err(ReconcileError::Former(_))), "{former:?}");
            }
            host.remove(&schema_at("ke"));
            flows.ensure(&host, &cluster, &root("new")).await.unwrap();
            assert_eq!(host.lock().objects[&schema_at("ke")]["metadata"]["ownerReferences"][0]["uid"], "new");
        }
    }
}
