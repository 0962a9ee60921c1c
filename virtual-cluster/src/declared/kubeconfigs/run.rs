//! The loop that stores kubeconfigs: when what is compared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use host_client::api::HostApi;
use ops::backoff::Backoff;
use ops::date::Moment;
use protocol::user_certificate::User;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::failure::{IssueError, Reason};
use super::issuer::Issuer;
use super::reconcile::{Done, Reconcile};
use super::secret::{self, KubeconfigSecret, Wanted};
use super::state::{KubeconfigState, KubeconfigStates, SeenKubeconfig};
use super::step::step;
use crate::declared::accept::{Judged, Verdict};
use crate::declared::follow::ByName;
use crate::declared::object::Declared;

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
    /// `None` if the configuration names no namespace for the Secrets.
    reconcile: Option<Reconcile<A, I>>,
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
    /// What the last attempt has failed with. Another attempt follows at once when this changes.
    failed_with: Option<Attempt>,
    /// What the last valid specification has asked for. `None` if there was none yet.
    asked: Option<Asked>,
}

/// What a specification asks for: the kubeconfig of a user, or none.
#[derive(Debug)]
struct Asked(Option<User>);

/// What decides whether an attempt can succeed: the generation of the object, and the Secret.
type Attempt = (i64, Option<String>);

// === impl Kubeconfigs ===

impl<A: HostApi, I: Issuer> Kubeconfigs<A, I> {
    /// A loop that writes to `namespace` with `api`, and tells the results to `states`. It refuses a namespace of a virtual
    /// cluster, whose clients could read the kubeconfigs of others.
    pub fn new(api: A, issuer: I, namespace: Option<Arc<str>>, states: KubeconfigStates) -> Self {
        let reconcile = namespace.map(|namespace| Reconcile { api, issuer, namespace });
        Self { reconcile, states, memory: HashMap::new() }
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
                (Some(judged), None) if self.reconcile.is_none() => self.round(&judged, &ByName::new()).await,
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
            if !judged.verdicts.get(name).is_some_and(Verdict::is_served) {
                continue;
            }
            let uid = &object.metadata.uid;
            let mut memory = self.memory.remove(uid).unwrap_or_default();
            // While the specification is invalid, the last valid one is in force.
            if let Ok(spec) = object.spec() {
                memory.asked = Some(Asked(spec.kubeconfig));
            }
            pause = pause.min(self.compare(object, found, &mut memory).await);
            self.memory.insert(uid.clone(), memory);
        }
        if self.memory.len() > judged.objects.len() {
            let is_known = |uid: &String| judged.objects.values().any(|object| object.metadata.uid == *uid);
            self.memory.retain(|uid, _| is_known(uid));
        }
        self.states.retain(|cluster| judged.objects.contains_key(cluster));
        pause
    }

    /// Compares one object. Returns the time until it must be compared again.
    async fn compare(&self, object: &Declared, found: &ByName<KubeconfigSecret>, memory: &mut Memory) -> Duration {
        let Some(user) = memory.asked.as_ref().map(|asked| asked.0.as_ref()) else { return PAUSE };
        let cluster = &object.metadata.name;
        let found = found.get(&secret::name(cluster)).map(Arc::as_ref);
        let attempt = (object.metadata.generation, found.map(|found| found.metadata.uid.clone()));
        let enrolled = self.reconcile.as_ref().map(|reconcile| reconcile.issuer.enrolled());
        let wanted = user.zip(enrolled).map(|(user, enrolled)| Wanted { user, enrolled });
        // Another replica may have stored a kubeconfig.
        let is_right = || step(object, wanted, found, Moment::now()).is_keep();
        let is_same = memory.failed_with.as_ref().is_none_or(|failed| *failed == attempt && !is_right());
        let rest = memory.until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| is_same && !rest.is_zero()) {
            return rest;
        }
        (memory.until, memory.failed_with) = (None, None);
        let done = match &self.reconcile {
            Some(reconcile) => reconcile.reconcile(object, wanted, found).await,
            None if user.is_none() => Ok(Done::Nothing),
            None => {
                let message = "the configuration of the agent has no kubeconfigNamespace, the namespace for the Secret";
                Err(IssueError::new(Reason::NoNamespace, message))
            }
        };
        let (state, rest) = match done {
            Ok(Done::Nothing) => (None, PAUSE),
            Ok(Done::NotReady) => return PAUSE,
            Ok(Done::Kept { state, renewal }) => {
                memory.backoff.reset();
                (Some(state), until(renewal))
            }
            Ok(Done::Written(state)) => {
                memory.backoff.reset();
                memory.until = Some(Instant::now() + ECHO);
                (Some(state), ECHO)
            }
            Err(error) => {
                let rest = memory.backoff.fail_with_full_jitter().max(Duration::from_secs(1));
                (memory.until, memory.failed_with) = (Some(Instant::now() + rest), Some(attempt));
                (Some(KubeconfigState::Failed(error)), rest)
            }
        };
        let (uid, generation) = (object.metadata.uid.clone(), object.metadata.generation);
        let seen = state.clone().map(|state| SeenKubeconfig { uid, generation, state });
        if self.states.set(cluster, seen.as_ref())
            && let Some(KubeconfigState::Failed(error)) = state
        {
            warn!(virtual_cluster = cluster, %error, "cannot store a kubeconfig; trying again");
        }
        rest
    }
}

/// The time until a moment, and at most [`PAUSE`].
fn until(moment: Moment) -> Duration {
    moment.time().duration_since(SystemTime::now()).unwrap_or_default().min(PAUSE)
}

// === impl Memory ===

impl Default for Memory {
    fn default() -> Self {
        Self { backoff: BACKOFF, until: None, failed_with: None, asked: None }
    }
}

#[cfg(test)]
mod tests;
