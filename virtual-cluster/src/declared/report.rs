//! The loop that writes to VirtualClusters what the agent knows, and removes what deleted ones have on the host.
//!
//! Nothing here waits for the host to do something: each round compares what is with what should be.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use host_client::api::{ApiError, HostApi};
use ops::date::Moment;
use ops::log::chain;
use rewrite::ClusterName;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::accept::{Judged, Verdict};
use super::event::Event;
use super::facts::Facts;
use super::finalizer::{self, Change};
use super::next_status::next_status;
use super::object::Declared;
use super::ready::{Ready, ready};
use super::removal::{self, Left};
use super::spec::DeletionPolicy;
use super::status::{READY, Status};
use super::{API_VERSION, KIND, PATH};
use crate::provisioner::ReconcileError;

/// The time between two rounds if everything is ready.
const CALM: Duration = Duration::from_secs(5);
/// The same while a cluster is not ready, or is being deleted.
const BUSY: Duration = Duration::from_secs(1);
/// The time for which a preliminary observation does not replace the status that another replica of the agent has written.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time within which a write must come back in the watch. Until then, the object here is older than the one on the host.
const ECHO: Duration = Duration::from_secs(2);

/// What the loop asks the agent.
pub trait Observe: Send + 'static {
    /// What the agent observes of each virtual cluster that it serves, by name.
    fn facts(&self) -> HashMap<String, Facts>;

    /// Whether the agent may still write objects of a cluster that it no longer serves.
    fn is_leaving(&self, cluster: &ClusterName) -> bool;
}

/// The loop, and what it remembers of each object.
#[derive(Debug)]
pub struct Report<A, O> {
    api: A,
    observe: O,
    /// The time after the deletion of an object before its namespaces are deleted.
    deletion_delay: Duration,
    /// By uid.
    memory: HashMap<String, Memory>,
}

/// What the loop remembers of an object.
#[derive(Debug, Default)]
struct Memory {
    /// When it has last written the status.
    written: Option<(Status, Instant)>,
    /// Since when what it observes has been preliminary.
    preliminary_since: Option<Instant>,
    /// When it was deleted, on the clock of the host, and when this loop has seen that, because the clocks can differ.
    deleted: Option<(Moment, Instant)>,
    /// Whether nothing was left on the host in the last round.
    was_empty: bool,
    /// The error of the last round.
    error: Option<String>,
}

// === impl Report ===

impl<A: HostApi, O: Observe> Report<A, O> {
    /// A loop that writes with `api`, and deletes the namespaces of a deleted object after this time. Another replica may have read
    /// a configuration file that has the cluster, while the one of this replica does not have it yet.
    pub fn new(api: A, observe: O, deletion_delay: Duration) -> Self {
        Self { api, observe, deletion_delay, memory: HashMap::new() }
    }

    /// Writes forever. `judged` is `None` until the objects are known.
    pub async fn run(mut self, mut judged: watch::Receiver<Option<Judged>>) {
        loop {
            let known = judged.borrow_and_update().clone();
            let pause = match &known {
                Some(judged) => self.round(judged).await,
                None => CALM,
            };
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = judged.changed() => {}
            }
        }
    }

    /// Compares all objects once. Returns the time until the next round.
    async fn round(&mut self, judged: &Judged) -> Duration {
        let facts = self.observe.facts();
        let mut pause = CALM;
        for (name, object) in judged.objects.iter() {
            let Some(verdict) = judged.verdicts.get(name) else { continue };
            let facts = facts.get(name).filter(|_| verdict.is_served());
            let uid = &object.metadata.uid;
            let mut memory = self.memory.remove(uid).unwrap_or_default();
            let outcome = self.compare(object, verdict, facts, &mut memory).await;
            let error = outcome.err().map(|error| chain(&error).to_string());
            if let Some(error) = error.as_ref().filter(|error| memory.error.as_ref() != Some(error)) {
                warn!(
                    virtual_cluster = name, %error,
                    "cannot update a VirtualCluster; trying again (did you apply agent-rbac.yaml and virtual-clusters.yaml of this version?)"
                );
            }
            memory.error = error;
            let status = object.status();
            let is_settled = status.is_ready() && (status.tells_kubeconfig() || !asks_for_kubeconfig(object));
            if memory.error.is_none() && (object.is_ending() || !is_settled) {
                pause = BUSY;
            }
            self.memory.insert(uid.clone(), memory);
        }
        let uids: Vec<_> = judged.objects.values().map(|object| &object.metadata.uid).collect();
        if self.memory.len() > uids.len() {
            self.memory.retain(|uid, _| uids.contains(&uid));
        }
        pause
    }

    async fn compare(
        &self,
        object: &Declared,
        verdict: &Verdict,
        facts: Option<&Facts>,
        memory: &mut Memory,
    ) -> Result<(), ReconcileError> {
        let ready = match verdict {
            Verdict::Ending(_) | Verdict::Yielding if !object.has_finalizer() => return Ok(()),
            Verdict::Ending(DeletionPolicy::Delete) => match self.remove(object, memory).await? {
                Some(progress) => progress,
                None => return self.release(object, "Deleted", "its namespaces have been deleted from the host").await,
            },
            Verdict::Ending(DeletionPolicy::Orphan) => {
                let message = "its namespaces stay on the host; `atoll clusters remove` deletes them";
                return self.release(object, "Orphaned", message).await;
            }
            Verdict::Yielding => {
                let message = "its namespaces stay on the host, because the agent's configuration file has the cluster";
                return self.release(object, "Orphaned", message).await;
            }
            Verdict::Unclaimed => {
                finalizer::change(&self.api, object, Change::Add).await?;
                ready(verdict, facts)
            }
            _ => ready(verdict, facts),
        };
        self.tell(object, ready, facts, memory).await?;
        Ok(())
    }

    /// Deletes what the cluster has on the host. `None` if nothing is left.
    async fn remove(&self, object: &Declared, memory: &mut Memory) -> Result<Option<Ready>, ReconcileError> {
        // No cluster of another name has ever been served.
        let Ok(cluster) = ClusterName::new(&object.metadata.name) else { return Ok(None) };
        if let Some(until) = self.waits(object, memory) {
            return Ok(Some(waiting(until)));
        }
        let left = removal::remove(&self.api, &cluster).await?;
        // The provisioner may still create namespaces, and so may another replica that has not seen the deletion yet.
        let is_empty = left.is_nothing() && !self.observe.is_leaving(&cluster);
        let was_empty = std::mem::replace(&mut memory.was_empty, is_empty);
        Ok((!is_empty || !was_empty).then(|| deleting(&left)))
    }

    /// Until when the namespaces of a deleted object must stay. `None` if they need not.
    fn waits(&self, object: &Declared, memory: &mut Memory) -> Option<Moment> {
        let delay = self.deletion_delay;
        let first = || (object.deleted().unwrap_or_else(Moment::now), Instant::now());
        let (deleted, seen) = *memory.deleted.get_or_insert_with(first);
        let is_early = deleted.age(SystemTime::now()).0 < delay && seen.elapsed() < delay;
        is_early.then(|| deleted.time().checked_add(delay).map_or(deleted, Moment::from))
    }

    /// Removes our finalizer.
    async fn release(&self, object: &Declared, reason: &'static str, message: &str) -> Result<(), ReconcileError> {
        if finalizer::change(&self.api, object, Change::Remove).await? {
            info!(virtual_cluster = object.metadata.name, "VirtualCluster deleted: {message}");
            let event = Event { is_warning: false, reason, message: message.to_owned() };
            event.send(&self.api, (KIND, &object.metadata), Moment::now()).await?;
        }
        Ok(())
    }

    /// Writes the status, and an Event if the condition Ready changes.
    async fn tell(
        &self,
        object: &Declared,
        ready: Ready,
        facts: Option<&Facts>,
        memory: &mut Memory,
    ) -> Result<(), ApiError> {
        if !ready.is_preliminary {
            memory.preliminary_since = None;
        } else if object.status().condition(READY).is_some() {
            // Another replica of the agent, or this one before a restart, may know more.
            let since = *memory.preliminary_since.get_or_insert_with(Instant::now);
            if since.elapsed() < PATIENCE {
                return Ok(());
            }
        }
        let now = Moment::now();
        let Some(status) = next_status(object, &ready, facts, now) else { return Ok(()) };
        if memory.written.as_ref().is_some_and(|(written, at)| *written == status && at.elapsed() < ECHO) {
            return Ok(());
        }
        let metadata = &object.metadata;
        // Another object with this name would have another uid, so this cannot create one or write to one.
        let mut applied = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": metadata.name, "uid": metadata.uid}, "status": status,
        });
        let path = format!("{PATH}/{}/status?fieldManager=proxy-agent&force=true", metadata.name);
        let mut outcome = self.api.apply(&path, &applied).await;
        if outcome.as_ref().is_err_and(is_undeclared) {
            for field in Status::LATER {
                applied["status"].as_object_mut().and_then(|status| status.remove(field));
            }
            outcome = self.api.apply(&path, &applied).await;
        }
        match outcome {
            // It has been deleted, or deleted and created again.
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            outcome => outcome?,
        };
        let changed = Event::of_change(&object.status(), &ready);
        memory.written = Some((status, Instant::now()));
        if let Some(event) = changed {
            event.send(&self.api, (KIND, &object.metadata), now).await?;
        }
        Ok(())
    }
}

/// Whether the definition of the kind on the host is older than this agent. An apply fails as a whole if one field is not declared.
fn is_undeclared(error: &ApiError) -> bool {
    chain(error).to_string().contains("field not declared in schema")
}

fn asks_for_kubeconfig(object: &Declared) -> bool {
    object.spec().is_ok_and(|spec| spec.kubeconfig.is_some())
}

/// The namespaces are not deleted yet.
fn waiting(until: Moment) -> Ready {
    let message = format!(
        "its namespaces on the host will be deleted after {until}, unless the agent's configuration file has the cluster then"
    );
    Ready { is_ready: false, reason: "Deleting", message, is_preliminary: false }
}

/// What is left of a cluster that is being deleted.
fn deleting(left: &Left) -> Ready {
    let mut names: Vec<_> = left.namespaces.iter().take(3).map(ToString::to_string).collect();
    if left.namespaces.len() > names.len() {
        names.push("...".to_owned());
    }
    let message = match left.namespaces.len() {
        0 => "its root namespace on the host is being deleted".to_owned(),
        count => format!(
            "{count} of its namespaces on the host are being deleted: {}; `kubectl describe namespace` shows what blocks it",
            names.join(", ")
        ),
    };
    Ready { is_ready: false, reason: "Deleting", message, is_preliminary: false }
}

#[cfg(test)]
mod tests;
