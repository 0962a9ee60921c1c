//! The agent's own rights to write cluster-scoped custom objects, kind by kind.
//!
//! The agent writes such objects with its own identity, and RBAC cannot express "all custom resources". So the agent is
//! bound to an aggregated ClusterRole (`configs/kubernetes/agent-rbac.yaml`). Before the first write of a kind, it
//! creates a ClusterRole for this kind with the label of the aggregation. The definition owns this ClusterRole, so the
//! host's garbage collector deletes both together.
//!
//! The agent grants itself this right only for kinds that the configuration lists, and for kinds that belong to virtual
//! clusters alone. This module decides that from the current definition on the host, regardless of the caller's
//! decision, because objects of an operator's kind can act on the whole host. The agent revokes a right that it no
//! longer needs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_wire::gvr::GroupResource;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use ops::backoff::Backoff;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::policy::Customs;
use crate::shared::{Definitions, HostObject, Instances, handover};
use host_client::api::ApiError;
use host_client::api::HostApi;

/// The label of roles that the host aggregates for the agent.
const LABEL: &str = "atoll.dev/agent-custom-resources";
/// The prefix of their names. Roles of virtual clusters have the prefix `vc:`.
const PREFIX: &str = "atoll:custom:";
/// The role that aggregates them (`configs/kubernetes/agent-rbac.yaml`).
const AGGREGATED: &str = "atoll-proxy-agent-custom-resources";
/// Reviews of the agent's own rights.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The time for the host to aggregate a role and to put it in force.
const AGGREGATION_TIMEOUT: Duration = Duration::from_secs(5);
/// If the right is missing after that time, the agent does not try again for this time.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The time for which a check that a kind belongs to virtual clusters alone is valid.
const CHECK_VALIDITY: Duration = Duration::from_secs(5);
/// The pauses between reviews.
const REVIEW_BACKOFF: Backoff = Backoff::new(Duration::from_millis(4), Duration::from_millis(256));
/// The intervals between checks of the rights, while definitions change and while they do not.
const CHECK_INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The known rights of the agent to write custom objects.
pub struct OwnRights<A> {
    api: A,
    customs: Customs,
    definitions: Arc<Definitions>,
    /// By the name of the definition. There is an entry for each kind that was written.
    rights: Mutex<HashMap<String, WriteRight>>,
    /// A lock for each kind whose role is being created, because the check of the kind's objects may take long.
    creating: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The right to write one kind, as far as the agent knows it.
#[derive(Clone)]
struct WriteRight {
    /// The uid of the definition, which may be deleted and created again.
    uid: Arc<str>,
    /// If the right is missing, the time until which the agent does not try again.
    lacking_until: Option<Instant>,
    /// The time until which the right is due; `None` if the configuration lists the kind.
    due_until: Option<Instant>,
}

/// Why the agent may not write a kind.
#[derive(Debug, thiserror::Error)]
pub enum MissingRight {
    /// A request to the host failed.
    #[error(transparent)]
    Host(#[from] ApiError),
    /// The role was created, but grants nothing.
    #[error("the agent's role does not aggregate the rights to custom resources")]
    NotGranted,
    /// The kind is the operator's, and the configuration does not list it.
    #[error("the kind belongs to the operator")]
    NotDue,
}

/// Whether a ClusterRole of the host grants the agent the right to write custom objects. Nobody else is bound to such roles.
pub fn is_agents_role(name: &str) -> bool {
    name.starts_with(PREFIX) || name == AGGREGATED
}

// === impl OwnRights ===

impl<A: HostApi> OwnRights<A> {
    /// `customs` are the kinds that the configuration lists.
    pub fn new(api: A, customs: Customs, definitions: Arc<Definitions>) -> Self {
        Self { api, customs, definitions, rights: Mutex::default(), creating: Mutex::default() }
    }

    /// Ensures that the agent may write objects of this kind, which has a definition. `scans` limits the number of
    /// kinds whose objects the agent lists at a time.
    pub async fn ensure_write(&self, kind: GroupResource<'_>, scans: &Semaphore) -> Result<(), MissingRight> {
        let name = format!("{}.{}", kind.resource, kind.group);
        if let Some(right) = self.of(&name) {
            return right;
        }
        // This must come before the lock: other clusters may wait for the lock.
        let _scan = scans.acquire().await;
        let creating = Arc::clone(self.creating().entry(name.clone()).or_default());
        let _turn = creating.lock().await;
        if let Some(right) = self.of(&name) {
            return right;
        }
        let definition = HostObject::new(self.api.get(&definition_path(&name)).await?);
        let due_until = self.due(kind, &name, &definition).await?;
        let uid: Arc<str> = definition.text("uid").into();
        if let Some(right) = self.lock().get_mut(&name).filter(|right| right.uid == uid && right.is_granted()) {
            right.due_until = due_until;
            return Ok(());
        }
        let role = format!("{PREFIX}{name}");
        let applied = format!("{}?fieldManager=proxy-agent&force=true", path(RBAC, "clusterroles", &role));
        self.api.apply(&applied, &role_of(kind, &role, &name, &uid)).await?;
        let is_granted = self.is_granted(kind).await?;
        if is_granted {
            info!(resource = name, "the agent may now write custom resources of this kind");
        } else {
            warn!(
                resource = name,
                "the agent may not write these custom resources: the ClusterRole atoll-proxy-agent-custom-resources of \
                 agent-rbac.yaml, or its binding, is not on the host, or no controller of the host aggregates it"
            );
        }
        let lacking_until = (!is_granted).then(|| Instant::now() + RETRY_AFTER);
        self.lock().insert(name, WriteRight { uid, lacking_until, due_until });
        if is_granted { Ok(()) } else { Err(MissingRight::NotGranted) }
    }

    fn creating(&self) -> MutexGuard<'_, HashMap<String, Arc<tokio::sync::Mutex<()>>>> {
        self.creating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the right to write a kind, after the host has refused a write of it.
    pub fn forget(&self, kind: GroupResource<'_>) {
        self.lock().remove(&format!("{}.{}", kind.resource, kind.group));
    }

    /// Revokes every right that is no longer due, forever.
    pub async fn keep(&self) {
        self.definitions.synced().await;
        let mut changes = self.definitions.changes();
        let [often, rarely] = CHECK_INTERVALS;
        loop {
            changes.borrow_and_update();
            if let Err(error) = self.revoke().await {
                let error: &dyn std::error::Error = &error;
                warn!(error, "cannot check the agent's own rights to custom resources");
            }
            sleep(often).await;
            let _ = timeout(rarely, changes.changed()).await;
        }
    }

    async fn revoke(&self) -> Result<(), ApiError> {
        // A lock without waiters is not needed until the next write of its kind.
        self.creating().retain(|_, creating| Arc::strong_count(creating) > 1);
        let mut roles = Vec::new();
        let label = format!("{LABEL}=true");
        self.api.each(&path(RBAC, "clusterroles", ""), &label, |role| roles.push(role.metadata.name)).await?;
        for role in &roles {
            let Some(name) = role.strip_prefix(PREFIX) else { continue };
            // The garbage collector deletes a role whose definition this agent does not know.
            let Some(is_of_clusters) = self.definitions.is_of_clusters(name) else { continue };
            if self.customs.of(name, is_of_clusters).is_written() {
                continue;
            }
            self.lock().remove(name);
            match self.api.delete::<IgnoredAny>(&path(RBAC, "clusterroles", role), &json!({})).await {
                Ok(_) => {
                    info!(
                        resource = name,
                        "removed the agent's right to write custom resources of a kind that belongs to the operator"
                    );
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The time until which the right is due; an error if it is not due. Hands a definition of virtual clusters over to
    /// the operator if others use it.
    async fn due(
        &self,
        kind: GroupResource<'_>,
        name: &str,
        definition: &HostObject,
    ) -> Result<Option<Instant>, MissingRight> {
        let spec = &definition.value()["spec"];
        let is_the_kind = spec["group"] == kind.group && spec["names"]["plural"] == kind.resource;
        if !is_the_kind || spec["scope"] != "Cluster" {
            return Err(MissingRight::NotDue);
        }
        let is_of_clusters = definition.is_of_clusters();
        if !self.customs.of(name, is_of_clusters).is_written() {
            return Err(MissingRight::NotDue);
        }
        if self.customs.lists(name) {
            return Ok(None);
        }
        let until = Instant::now() + CHECK_VALIDITY;
        if let Some(instances) = Instances::of(definition)
            && instances.any_outside(&self.api, definition).await?
        {
            handover::hand_over(&self.api, name, "objects of it exist that no virtual cluster created").await?;
            return Err(MissingRight::NotDue);
        }
        Ok(Some(until))
    }

    /// The known right to write a kind. `None` if it is unknown, or that of an earlier definition of the same name.
    fn of(&self, name: &str) -> Option<Result<(), MissingRight>> {
        let uid = self.definitions.uid(name)?;
        let is_of_clusters = self.definitions.is_of_clusters(name)?;
        if !self.customs.of(name, is_of_clusters).is_written() {
            return Some(Err(MissingRight::NotDue));
        }
        let right = self.lock().get(name).filter(|right| right.uid == uid).cloned()?;
        let now = Instant::now();
        match right.lacking_until {
            None => right.due_until.is_none_or(|until| now < until).then_some(Ok(())),
            Some(until) => (now < until).then_some(Err(MissingRight::NotGranted)),
        }
    }

    async fn is_granted(&self, kind: GroupResource<'_>) -> Result<bool, ApiError> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "update", "group": kind.group, "resource": kind.resource}},
        });
        let deadline = Instant::now() + AGGREGATION_TIMEOUT;
        let mut backoff = REVIEW_BACKOFF;
        loop {
            if self.api.create(REVIEWS, &review).await?["status"]["allowed"] == true {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(backoff.fail()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WriteRight>> {
        self.rights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WriteRight ===

impl WriteRight {
    fn is_granted(&self) -> bool {
        self.lacking_until.is_none()
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn definition_path(name: &str) -> String {
    path("apiextensions.k8s.io", "customresourcedefinitions", name)
}

fn role_of(kind: GroupResource<'_>, role: &str, definition: &str, uid: &str) -> Value {
    let resources = ["", "/scale", "/status"].map(|subresource| format!("{}{subresource}", kind.resource));
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {
            "name": role,
            "labels": {LABEL: "true", "app.kubernetes.io/managed-by": "atoll"},
            "ownerReferences": [{
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": definition, "uid": uid,
            }],
        },
        "rules": [{
            "apiGroups": [kind.group], "resources": resources,
            "verbs": ["create", "delete", "deletecollection", "patch", "update"],
        }],
    })
}

/// The path of one cluster-scoped object, or of the collection if `name` is empty or cannot be in a path.
fn path(group: &str, resource: &str, name: &str) -> String {
    let name = SegmentName::new(name).ok();
    ResourcePath { name, ..ResourcePath::new(group, "v1", resource) }.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::policy::Custom;
    use crate::provisioner::testing::FakeHost;
    use host_client::api::Change;

    static SCANS: Semaphore = Semaphore::const_new(1);

    const GEARS: GroupResource<'static> = GroupResource { group: "example.com", resource: "gears" };
    const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.example.com";
    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll:custom:gears.example.com";

    /// A definition that `ke` has created.
    fn definition() -> Value {
        let metadata = json!({
            "name": "gears.example.com", "labels": {"atoll.dev/shared": ""}, "annotations": {"overlay.atoll.dev/ke": "{}"},
        });
        let (names, versions) = (json!({"plural": "gears"}), json!([{"name": "v1", "served": true}]));
        json!({
            "metadata": metadata,
            "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": versions},
        })
    }

    fn host() -> (FakeHost, OwnRights<FakeHost>) {
        configured([])
    }

    fn configured<const N: usize>(customs: [(&str, Custom); N]) -> (FakeHost, OwnRights<FakeHost>) {
        let host = FakeHost::new();
        host.put(DEFINITION, definition());
        let customs = Customs::new(customs.map(|(name, custom)| (name.to_owned(), custom)));
        let rights = OwnRights::new(host.clone(), customs, Arc::new(Definitions::default()));
        deliver(&host, &rights);
        (host, rights)
    }

    fn deliver(host: &FakeHost, rights: &OwnRights<FakeHost>) {
        rights
            .definitions
            .take(&Change::Applied(serde_json::from_value(host.lock().objects[DEFINITION].clone()).unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_role_is_created_once_before_the_first_write() {
        let (host, rights) = host();
        host.lock().reviews_behind = 3;
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        let role = host.lock().objects[ROLE].clone();
        assert_eq!(role["metadata"]["labels"][LABEL], "true");
        assert_eq!(role["rules"][0]["resources"], json!(["gears", "gears/scale", "gears/status"]));
        assert_eq!(role["metadata"]["ownerReferences"][0]["uid"], host.lock().objects[DEFINITION]["metadata"]["uid"]);
        let reviews = host.lock().reviews;
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        assert_eq!(host.lock().reviews, reviews);
        // The role was deleted.
        host.remove(ROLE);
        rights.forget(GEARS);
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        assert!(host.lock().objects.contains_key(ROLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_waits_does_not_delay_others() {
        let (_host, rights) = host();
        let none = Semaphore::new(0);
        let mut waiting = std::pin::pin!(rights.ensure_write(GEARS, &none));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        none.add_permits(1);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_recreated_definition_gets_a_new_role() {
        let (host, rights) = host();
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        host.remove(DEFINITION);
        host.put(DEFINITION, definition());
        let anew = host.lock().objects[DEFINITION].clone();
        rights.definitions.take(&Change::Applied(serde_json::from_value(anew.clone()).unwrap()));
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        let owner = &host.lock().objects[ROLE]["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], anew["metadata"]["uid"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_right_is_not_requested_continuously() {
        let (host, rights) = host();
        host.lock().reviews_behind = u32::MAX;
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotGranted)));
        let reviews = host.lock().reviews;
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotGranted)));
        assert_eq!(host.lock().reviews, reviews);
        // The operator has corrected the roles on the host.
        host.lock().reviews_behind = 0;
        sleep(RETRY_AFTER).await;
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_of_the_operator_are_not_written() {
        let (host, rights) = host();
        // The definition on the host counts, and not the one that the agent knows.
        host.edit(DEFINITION, |definition| definition["metadata"]["labels"] = json!({}));
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotDue)));
        host.edit(DEFINITION, |object| *object = definition());
        host.edit(DEFINITION, |object| {
            object["metadata"]["managedFields"] = json!([{"manager": "helm", "fieldsV1": {"f:spec": {}}}]);
        });
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotDue)));
        host.edit(DEFINITION, |object| *object = definition());
        host.edit(DEFINITION, |object| object["spec"]["scope"] = json!("Namespaced"));
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotDue)));
        assert!(!host.lock().objects.contains_key(ROLE));
        for (custom, is_written) in
            [(Custom::Read, false), (Custom::Hidden, false), (Custom::Renamed, true), (Custom::Shared, true)]
        {
            let (host, rights) = configured([("gears.example.com", custom)]);
            host.edit(DEFINITION, |definition| definition["metadata"]["labels"] = json!({}));
            deliver(&host, &rights);
            assert_eq!(rights.ensure_write(GEARS, &SCANS).await.is_ok(), is_written, "{custom:?}");
            assert_eq!(host.lock().objects.contains_key(ROLE), is_written, "{custom:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_with_objects_of_others_is_handed_over() {
        let (host, rights) = host();
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        host.put(
            "/apis/example.com/v1/gears/a.ke",
            json!({"metadata": {"labels": {"atoll.dev/virtual-cluster": "ke"}}}),
        );
        sleep(CHECK_VALIDITY).await;
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        host.put("/apis/example.com/v1/gears/plain", json!({"metadata": {}}));
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        sleep(CHECK_VALIDITY).await;
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotDue)));
        assert_eq!(host.lock().objects[DEFINITION]["metadata"]["labels"], json!({}));
        // This is permanent.
        host.remove("/apis/example.com/v1/gears/plain");
        deliver(&host, &rights);
        assert!(matches!(rights.ensure_write(GEARS, &SCANS).await, Err(MissingRight::NotDue)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_is_no_longer_due_is_revoked() {
        let (host, rights) = host();
        rights.definitions.take(&Change::Synced);
        rights.ensure_write(GEARS, &SCANS).await.unwrap();
        let other = ROLE.replace("gears", "unheard");
        host.put(&other, json!({"metadata": {"name": "atoll:custom:unheard.example.com", "labels": {LABEL: "true"}}}));
        host.edit(ROLE, |role| role["metadata"]["name"] = json!("atoll:custom:gears.example.com"));
        let taken_back = async {
            sleep(CHECK_INTERVALS[0]).await;
            assert!(host.lock().objects.contains_key(ROLE));
            host.edit(DEFINITION, |definition| definition["metadata"]["labels"] = json!({}));
            deliver(&host, &rights);
            host.until(|state| !state.objects.contains_key(ROLE)).await;
        };
        tokio::select! {
            () = rights.keep() => unreachable!("they are kept for ever"),
            () = taken_back => {}
        }
        assert!(host.lock().objects.contains_key(&other));
    }
}
