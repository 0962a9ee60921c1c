//! The agent's own right to write custom objects that are in no namespace, kind by kind.
//!
//! Such objects are written in the agent's name, and RBAC has no word for "custom resources". So the agent is bound to a
//! ClusterRole that the host aggregates (`configs/kubernetes/agent-rbac.yaml`), and before the first write of a kind it
//! makes a ClusterRole with the label that is aggregated by, for that kind alone. It belongs to the kind's definition, and
//! goes with it by the host's garbage collection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_wire::gvr::GroupResource;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;
use crate::shared::Definitions;

/// The label of roles that the host aggregates for the agent.
const LABEL: &str = "atoll.dev/agent-custom-resources";
/// What their names begin with. Those of virtual clusters' roles begin with `vc:`.
const PREFIX: &str = "atoll:custom:";
/// Where the agent asks what it may do.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// How long the host may take to aggregate and to take it up.
const PATIENCE: Duration = Duration::from_secs(5);
/// After that has not helped, how long no is taken for an answer.
const LACKING: Duration = Duration::from_secs(10);
/// The first pause between questions; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// No pause is longer.
const LAST_PAUSE: Duration = Duration::from_millis(256);

/// What the agent may write by now.
pub(crate) struct OwnRights<A> {
    api: A,
    definitions: Arc<Definitions>,
    /// By the name of the definition. As many as there are kinds that were written to.
    known: Mutex<HashMap<String, Known>>,
    /// One at a time makes roles.
    making: tokio::sync::Mutex<()>,
}

/// What is known of one kind.
#[derive(Clone)]
struct Known {
    /// Of the definition, which may be made anew.
    uid: Arc<str>,
    /// The right is not there, which is believed until then.
    lacking_until: Option<Instant>,
}

/// Why the agent may not write a kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lack {
    /// The host could not be asked.
    #[error(transparent)]
    Host(#[from] ApiError),
    /// The role was made, and gives nothing.
    #[error("the agent's role does not take in the rights to custom resources")]
    NotGiven,
}

// === impl OwnRights ===

impl<A: HostApi> OwnRights<A> {
    pub(crate) fn new(api: A, definitions: Arc<Definitions>) -> Self {
        Self { api, definitions, known: Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    /// Sees to it that the agent may write objects of this kind, of which there is a definition.
    pub(crate) async fn to_write(&self, kind: GroupResource<'_>) -> Result<(), Lack> {
        let name = format!("{}.{}", kind.resource, kind.group);
        if let Some(known) = self.of(&name) {
            return known;
        }
        let _turn = self.making.lock().await;
        if let Some(known) = self.of(&name) {
            return known;
        }
        let definition = self.api.get(&path("apiextensions.k8s.io", "customresourcedefinitions", &name)).await?;
        let uid: Arc<str> = definition["metadata"]["uid"].as_str().unwrap_or_default().into();
        let role = format!("{PREFIX}{name}");
        let applied = format!("{}?fieldManager=proxy-agent&force=true", path(RBAC, "clusterroles", &role));
        self.api.apply(&applied, &role_of(kind, &role, &name, &uid)).await?;
        let is_given = self.is_given(kind).await?;
        if is_given {
            info!(resource = name, "the agent may write custom resources of a kind more");
        } else {
            warn!(
                resource = name,
                "the agent may not write these custom resources: the ClusterRole atoll-proxy-agent-custom-resources of \
                 agent-rbac.yaml, or its binding, is not on the host, or no controller of the host aggregates it"
            );
        }
        let lacking_until = (!is_given).then(|| Instant::now() + LACKING);
        self.lock().insert(name, Known { uid, lacking_until });
        if is_given { Ok(()) } else { Err(Lack::NotGiven) }
    }

    /// The host has refused the agent such a write: what is known is no more.
    pub(crate) fn doubt(&self, kind: GroupResource<'_>) {
        self.lock().remove(&format!("{}.{}", kind.resource, kind.group));
    }

    /// `None` if it is not known, or was about an earlier definition of the same name.
    fn of(&self, name: &str) -> Option<Result<(), Lack>> {
        let uid = self.definitions.uid(name)?;
        let known = self.lock().get(name).filter(|known| known.uid == uid).cloned()?;
        match known.lacking_until {
            None => Some(Ok(())),
            Some(until) => (Instant::now() < until).then_some(Err(Lack::NotGiven)),
        }
    }

    async fn is_given(&self, kind: GroupResource<'_>) -> Result<bool, ApiError> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "update", "group": kind.group, "resource": kind.resource}},
        });
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            if self.api.create(REVIEWS, &review).await?["status"]["allowed"] == true {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

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

/// The path of one object that is in no namespace. What has a name that no path can hold does not exist.
fn path(group: &str, resource: &str, name: &str) -> String {
    let name = SegmentName::new(name).ok();
    ResourcePath { name, ..ResourcePath::new(group, "v1", resource) }.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::api::Change;
    use crate::root::testing::FakeHost;

    const GEARS: GroupResource<'static> = GroupResource { group: "example.com", resource: "gears" };
    const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.example.com";
    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/atoll:custom:gears.example.com";

    fn host() -> (FakeHost, OwnRights<FakeHost>) {
        let host = FakeHost::new();
        host.put(DEFINITION, json!({"metadata": {"name": "gears.example.com"}}));
        let definitions = Arc::new(Definitions::default());
        definitions.take(&Change::Applied(host.lock().objects[DEFINITION].clone()));
        (host.clone(), OwnRights::new(host, definitions))
    }

    #[tokio::test(start_paused = true)]
    async fn a_role_is_made_before_the_first_write_and_not_again() {
        let (host, rights) = host();
        host.lock().reviews_behind = 3;
        rights.to_write(GEARS).await.unwrap();
        let role = host.lock().objects[ROLE].clone();
        assert_eq!(role["metadata"]["labels"][LABEL], "true");
        assert_eq!(role["rules"][0]["resources"], json!(["gears", "gears/scale", "gears/status"]));
        assert_eq!(role["metadata"]["ownerReferences"][0]["uid"], host.lock().objects[DEFINITION]["metadata"]["uid"]);
        let asked = host.lock().reviews;
        rights.to_write(GEARS).await.unwrap();
        assert_eq!(host.lock().reviews, asked);
        // Somebody has taken it away.
        host.remove(ROLE);
        rights.doubt(GEARS);
        rights.to_write(GEARS).await.unwrap();
        assert!(host.lock().objects.contains_key(ROLE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_was_made_anew_has_a_role_of_its_own() {
        let (host, rights) = host();
        rights.to_write(GEARS).await.unwrap();
        host.remove(DEFINITION);
        host.put(DEFINITION, json!({"metadata": {"name": "gears.example.com"}}));
        let anew = host.lock().objects[DEFINITION].clone();
        rights.definitions.take(&Change::Applied(anew.clone()));
        rights.to_write(GEARS).await.unwrap();
        let owner = &host.lock().objects[ROLE]["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], anew["metadata"]["uid"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_is_not_given_is_not_asked_for_all_the_time() {
        let (host, rights) = host();
        host.lock().reviews_behind = u32::MAX;
        assert!(matches!(rights.to_write(GEARS).await, Err(Lack::NotGiven)));
        let asked = host.lock().reviews;
        assert!(matches!(rights.to_write(GEARS).await, Err(Lack::NotGiven)));
        assert_eq!(host.lock().reviews, asked);
        // Its operator has read the log.
        host.lock().reviews_behind = 0;
        sleep(LACKING).await;
        rights.to_write(GEARS).await.unwrap();
    }
}
