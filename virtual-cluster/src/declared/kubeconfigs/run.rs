//! The loop that stores kubeconfigs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi, Partial};
use ops::backoff::Backoff;
use ops::date::Moment;
use ops::log::chain;
use protocol::ClusterName;
use protocol::user_certificate::User;
use rewrite::name::{CLUSTER_LABEL, ROOT_LABEL};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::issuer::{IssueError, Issuer};
use super::secret::{self, KubeconfigSecret, Wanted, secret};
use super::state::{KubeconfigState, KubeconfigStates};
use super::step::{Step, step};
use crate::declared::accept::{Judged, Verdict};
use crate::declared::follow::ByName;
use crate::declared::object::Declared;
use crate::namespaces;

/// The maximum time between two rounds, because the system time can jump.
const PAUSE: Duration = Duration::from_secs(30);
/// The pauses after a failure. A proxy-server that adds a cluster needs some seconds.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(120));
/// The time within which a write must come back in the watch. Until then, the Secret here is older than the one on the host. It also
/// limits how often a proxy-server issues a certificate if the clocks of the machines differ.
const ECHO: Duration = Duration::from_secs(5);

/// The loop, and what it remembers of each object.
#[derive(Debug)]
pub struct Kubeconfigs<A, I> {
    api: A,
    issuer: I,
    /// The namespace of the Secrets. `None` if the configuration has none.
    namespace: Option<Arc<str>>,
    states: KubeconfigStates,
    /// By uid.
    memory: HashMap<String, Memory>,
}

/// What the loop remembers of an object.
#[derive(Debug)]
struct Memory {
    backoff: Backoff,
    /// It does nothing before this time.
    until: Option<Instant>,
}

// === impl Kubeconfigs ===

impl<A: HostApi, I: Issuer> Kubeconfigs<A, I> {
    /// A loop that writes to `namespace` with `api`, and tells the results to `states`. It refuses a namespace of a virtual
    /// cluster, whose clients could read the kubeconfigs of others.
    pub fn new(api: A, issuer: I, namespace: Option<Arc<str>>, states: KubeconfigStates) -> Self {
        Self { api, issuer, namespace, states, memory: HashMap::new() }
    }

    /// Compares forever. `judged` and `secrets` are `None` until the objects are known.
    pub async fn run(
        mut self,
        mut judged: watch::Receiver<Option<Judged>>,
        mut secrets: watch::Receiver<Option<Arc<ByName<KubeconfigSecret>>>>,
    ) {
        loop {
            let (objects, found) = (judged.borrow_and_update().clone(), secrets.borrow_and_update().clone());
            let pause = match (objects, found) {
                (Some(judged), Some(found)) => self.round(&judged, &found).await,
                (Some(judged), None) if self.namespace.is_none() => self.round(&judged, &ByName::new()).await,
                _ => PAUSE,
            };
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = judged.changed() => {}
                Ok(()) = secrets.changed() => {}
            }
        }
    }

    /// Compares all objects once. Returns the time until the next round.
    async fn round(&mut self, judged: &Judged, found: &ByName<KubeconfigSecret>) -> Duration {
        let mut pause = PAUSE;
        for (name, object) in judged.objects.iter() {
            let is_served = judged.verdicts.get(name) == Some(&Verdict::Served);
            let Ok(spec) = object.spec() else { continue };
            if !is_served {
                continue;
            }
            let uid = &object.metadata.uid;
            let mut memory = self.memory.remove(uid).unwrap_or_default();
            let rest = self.compare(object, spec.kubeconfig.as_ref(), found, &mut memory).await;
            pause = pause.min(rest);
            self.memory.insert(uid.clone(), memory);
        }
        let is_known = |uid: &String| judged.objects.values().any(|object| object.metadata.uid == *uid);
        if self.memory.len() > judged.objects.len() {
            self.memory.retain(|uid, _| is_known(uid));
        }
        self.states.retain(|cluster| judged.objects.contains_key(cluster));
        pause
    }

    /// Compares one object. Returns the time until it must be compared again.
    async fn compare(
        &self,
        object: &Declared,
        wanted: Option<&User>,
        found: &ByName<KubeconfigSecret>,
        memory: &mut Memory,
    ) -> Duration {
        let rest = memory.until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            return rest;
        }
        let cluster = &object.metadata.name;
        let outcome = self.carry_out(object, wanted, found).await;
        let (state, rest) = match outcome {
            Ok(Done::Nothing) => (None, PAUSE),
            Ok(Done::Kept { state, renewal }) => {
                memory.backoff.reset();
                (Some(state), renewal)
            }
            Ok(Done::Written { state }) => {
                memory.backoff.reset();
                memory.until = Some(Instant::now() + ECHO);
                (Some(state), ECHO)
            }
            // The message of the condition Ready says why the cluster is not ready.
            Err(None) => return PAUSE,
            Err(Some(error)) => {
                let rest = memory.backoff.fail_with_full_jitter().max(Duration::from_secs(1));
                memory.until = Some(Instant::now() + rest);
                (Some(KubeconfigState::Failed { reason: error.reason, message: error.message }), rest)
            }
        };
        if self.states.set(cluster, state.clone())
            && let Some(KubeconfigState::Failed { message, .. }) = state
        {
            warn!(virtual_cluster = cluster, error = message, "cannot store a kubeconfig; trying again");
        }
        rest
    }

    async fn carry_out(
        &self,
        object: &Declared,
        wanted: Option<&User>,
        found: &ByName<KubeconfigSecret>,
    ) -> Result<Done, Option<IssueError>> {
        let name = secret::name(&object.metadata.name);
        let found = found.get(&name).map(Arc::as_ref);
        let namespace = match (&self.namespace, wanted) {
            (Some(namespace), _) => namespace,
            (None, None) => return Ok(Done::Nothing),
            (None, Some(_)) => {
                let message = "set kubeconfigNamespace in the configuration of the agent: the namespace for the Secret";
                return Err(Some(failed("NoNamespace", message)));
            }
        };
        let wanted = wanted.map(|user| Wanted { user, enrolled: self.issuer.enrolled() });
        match (step(object, wanted, found, Moment::now()), wanted) {
            (Step::Keep { renewal, expiry }, _) => {
                let state = KubeconfigState::Issued { namespace: Arc::clone(namespace), name, expiry };
                Ok(Done::Kept { state, renewal: until(renewal) })
            }
            (Step::Foreign, _) => Err(Some(conflict(namespace, &name))),
            (Step::Delete, _) => {
                self.delete(namespace, &name, found).await.map_err(|error| Some(refused(&error)))?;
                Ok(Done::Nothing)
            }
            (Step::Issue, Some(wanted)) => self.store(object, namespace, wanted, found).await,
            (Step::Issue | Step::Nothing, _) => Ok(Done::Nothing),
        }
    }

    /// Issues a kubeconfig, and stores it.
    async fn store(
        &self,
        object: &Declared,
        namespace: &Arc<str>,
        wanted: Wanted<'_>,
        found: Option<&KubeconfigSecret>,
    ) -> Result<Done, Option<IssueError>> {
        if !object.status().is_ready() {
            return Err(None);
        }
        if self.is_of_a_cluster(namespace).await.map_err(|error| Some(refused(&error)))? {
            let message = format!(
                "kubeconfigNamespace in the configuration of the agent: {namespace} belongs to a virtual cluster"
            );
            return Err(Some(failed("NamespaceOfCluster", message)));
        }
        let cluster = &object.metadata.name;
        let named = cluster.parse::<ClusterName>().map_err(|error| Some(failed("Invalid", error.to_string())))?;
        let issued = self.issuer.issue(&named, wanted.user).await.map_err(Some)?;
        let mut stored = secret(object, namespace, &wanted, &issued);
        let path = secret::path(namespace);
        let name = secret::name(cluster);
        let written = match found {
            Some(found) => {
                // Another Secret with this name would have another uid, so this cannot write to one.
                stored["metadata"]["uid"] = found.metadata.uid.clone().into();
                let path = format!("{path}/{name}?fieldManager=proxy-agent&force=true");
                self.api.apply(&path, &stored).await
            }
            None => self.api.create(&format!("{path}?fieldManager=proxy-agent"), &stored).await,
        };
        match written {
            Err(error) if error.is_conflict() && found.is_none() => return self.exists(object, namespace, name).await,
            Err(error) => return Err(Some(refused(&error))),
            Ok(_) => {}
        }
        info!(virtual_cluster = cluster, secret = name, user = wanted.user.user, expires = %issued.expiry, "stored a kubeconfig");
        let expiry = issued.expiry;
        Ok(Done::Written { state: KubeconfigState::Issued { namespace: Arc::clone(namespace), name, expiry } })
    }

    /// Whether the namespace belongs to a virtual cluster of this agent, or of another one.
    async fn is_of_a_cluster(&self, namespace: &str) -> Result<bool, ApiError> {
        let found: Partial = self.api.read(&format!("{}/{namespace}", namespaces::PATH)).await?;
        Ok([CLUSTER_LABEL, ROOT_LABEL].iter().any(|label| found.metadata.labels.contains_key(*label)))
    }

    /// A Secret exists that has not been there: another replica of the agent has been faster, or somebody else has the name.
    async fn exists(&self, object: &Declared, namespace: &Arc<str>, name: String) -> Result<Done, Option<IssueError>> {
        let path = format!("{}/{name}", secret::path(namespace));
        let found = self.api.read::<KubeconfigSecret>(&path).await.map_err(|error| Some(refused(&error)))?;
        match found.expiry().filter(|_| found.is_of(object)) {
            Some(expiry) => {
                let state = KubeconfigState::Issued { namespace: Arc::clone(namespace), name, expiry };
                Ok(Done::Written { state })
            }
            None => Err(Some(conflict(namespace, &name))),
        }
    }

    async fn delete(&self, namespace: &str, name: &str, found: Option<&KubeconfigSecret>) -> Result<(), ApiError> {
        let uid = found.map(|found| &found.metadata.uid);
        let path = format!("{}/{name}", secret::path(namespace));
        match self.api.delete::<IgnoredAny>(&path, &json!({"preconditions": {"uid": uid}})).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// What a round has done about an object.
#[derive(Debug)]
enum Done {
    Nothing,
    /// The Secret is right until this time.
    Kept {
        state: KubeconfigState,
        renewal: Duration,
    },
    Written {
        state: KubeconfigState,
    },
}

/// The time until a moment, and at most [`PAUSE`].
fn until(moment: Moment) -> Duration {
    moment.time().duration_since(std::time::SystemTime::now()).unwrap_or_default().min(PAUSE)
}

fn failed(reason: &'static str, message: impl Into<String>) -> IssueError {
    IssueError { reason, message: message.into() }
}

fn conflict(namespace: &str, name: &str) -> IssueError {
    failed(
        "NameConflict",
        format!("Secret {namespace}/{name} exists, and does not belong to this VirtualCluster: delete it"),
    )
}

fn refused(error: &ApiError) -> IssueError {
    failed("Failed", format!("cannot write the Secret: {}", chain(error)))
}

// === impl Memory ===

impl Default for Memory {
    fn default() -> Self {
        Self { backoff: BACKOFF, until: None }
    }
}

#[cfg(test)]
mod tests;
