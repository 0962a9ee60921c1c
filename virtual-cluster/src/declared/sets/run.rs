//! The loop that writes the VirtualClusters of all sets.
//!
//! Replicas of an agent do the same work: what one has written is in force for the others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi, Partial};
use ops::date::Moment;
use ops::log::chain;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::super::event::Event;
use super::super::follow::{ByName, Objects};
use super::super::spec::DeletionPolicy;
use super::super::status::Condition;
use super::super::{API_VERSION, PATH as CLUSTERS_PATH};
use super::apply;
use super::object::{ClusterSet, SetStatus};
use super::plan::{Plan, plan};
use super::spec::{SetSpec, Source};
use super::{KIND, PATH};
use crate::nodes::AllNodes;

/// The time between two rounds if nothing changes. NodeGroups, and nodes that were deleted, are noticed after this time.
const PERIOD: Duration = Duration::from_secs(5);
/// The time within which a written status must come back in the watch.
const ECHO: Duration = Duration::from_secs(2);

/// The path of `KubeEdge`'s NodeGroups.
const GROUPS_PATH: &str = "/apis/apps.kubeedge.io/v1alpha1/nodegroups";

/// The largest message of a condition, in characters.
const MAX_MESSAGE: usize = 1024;

/// The loop, and what it remembers of each set.
#[derive(Debug)]
pub struct Sets<A> {
    api: A,
    nodes: Arc<AllNodes>,
    /// By uid.
    memory: HashMap<String, Memory>,
}

/// What the loop remembers of a set.
#[derive(Debug, Default)]
struct Memory {
    /// The VirtualClusters whose values do not exist, and since when.
    obsolete: HashMap<String, Instant>,
    written: Option<(SetStatus, Instant)>,
    /// The error of the last round.
    error: Option<String>,
}

// === impl Sets ===

impl<A: HostApi> Sets<A> {
    /// A loop that writes with `api`.
    pub fn new(api: A, nodes: Arc<AllNodes>) -> Self {
        Self { api, nodes, memory: HashMap::new() }
    }

    /// Writes forever. Both are `None` until they are known.
    pub async fn run(
        mut self,
        mut sets: watch::Receiver<Option<Arc<ByName<ClusterSet>>>>,
        mut objects: watch::Receiver<Option<Arc<Objects>>>,
    ) {
        let mut nodes = self.nodes.changes();
        loop {
            let known = (sets.borrow_and_update().clone(), objects.borrow_and_update().clone());
            if let (Some(sets), Some(objects)) = known {
                self.round(&sets, &objects).await;
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                Ok(()) = sets.changed() => {}
                Ok(()) = objects.changed() => {}
                Ok(()) = nodes.changed() => {}
            }
        }
    }

    async fn round(&mut self, sets: &ByName<ClusterSet>, objects: &Objects) {
        for set in sets.values().filter(|set| set.metadata.deletion_timestamp.is_none()) {
            let mut memory = self.memory.remove(&set.metadata.uid).unwrap_or_default();
            let outcome = self.reconcile(set, objects, &mut memory).await;
            let error = outcome.err().map(|error| chain(&error).to_string());
            if let Some(error) = error.as_ref().filter(|error| memory.error.as_ref() != Some(error)) {
                warn!(
                    set = set.metadata.name, %error,
                    "cannot update a VirtualClusterSet; trying again (does the agent have the rights of agent-rbac.yaml?)"
                );
            }
            memory.error = error;
            self.memory.insert(set.metadata.uid.clone(), memory);
        }
        self.memory.retain(|uid, _| sets.values().any(|set| set.metadata.uid == *uid));
    }

    async fn reconcile(&self, set: &ClusterSet, objects: &Objects, memory: &mut Memory) -> Result<(), ApiError> {
        let spec = match set.spec() {
            Ok(spec) => spec,
            Err(error) => {
                return self.tell(set, objects, &Plan::default(), ("Invalid", error.to_string()), memory).await;
            }
        };
        let values = match self.values(&spec.source).await? {
            Some(Ok(values)) => values,
            Some(Err(problem)) => {
                return self.tell(set, objects, &Plan::default(), ("NoNodeGroups", problem), memory).await;
            }
            // The nodes are not known yet.
            None => return Ok(()),
        };
        let plan = plan(set, &spec, &values, objects);
        let mut problems = plan.problems.clone();
        for object in &plan.apply {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let is_new = !plan.own.contains(name);
            match apply::apply(&self.api, name, object, is_new).await {
                Err(error) if error.is_conflict() || error.status().is_some_and(|status| status.code == 422) => {
                    problems.push(format!("{name}: {}", chain(&error)));
                }
                outcome => {
                    if outcome? {
                        self.event(set, "Created", format!("created VirtualCluster {name}")).await?;
                    }
                }
            }
        }
        self.delete(set, &spec, &plan, objects, memory).await?;
        let condition = if problems.is_empty() {
            ("Complete", complete(&plan, &spec))
        } else {
            ("Incomplete", problems.join("; "))
        };
        self.tell(set, objects, &plan, condition, memory).await
    }

    /// The values that exist, or why there are none. `None` if that is not known yet.
    async fn values(&self, source: &Source) -> Result<Option<Result<BTreeSet<String>, String>>, ApiError> {
        match source {
            Source::NodeLabel(label) => Ok(self.nodes.values(label).map(Ok)),
            Source::NodeGroups => {
                let mut names = BTreeSet::new();
                let see = |group: Partial| {
                    names.insert(group.metadata.name);
                };
                match self.api.each(GROUPS_PATH, "", see).await {
                    Err(error) if error.is_not_found() => {
                        Ok(Some(Err("the host has no NodeGroups: install KubeEdge's CRD, or set nodeLabel".to_owned())))
                    }
                    outcome => outcome.map(|()| Some(Ok(names))),
                }
            }
        }
    }

    /// Deletes the VirtualClusters whose values have been absent for long enough.
    async fn delete(
        &self,
        set: &ClusterSet,
        spec: &SetSpec,
        plan: &Plan,
        objects: &Objects,
        memory: &mut Memory,
    ) -> Result<(), ApiError> {
        memory.obsolete.retain(|name, _| plan.obsolete.contains(name));
        if spec.deletion_policy == DeletionPolicy::Orphan {
            return Ok(());
        }
        for name in &plan.obsolete {
            let since = *memory.obsolete.entry(name.clone()).or_insert_with(Instant::now);
            let Some(object) = objects.get(name).filter(|_| since.elapsed() >= spec.deletion_delay) else { continue };
            let path = format!("{CLUSTERS_PATH}/{name}");
            let options = json!({"preconditions": {"uid": object.metadata.uid}});
            match self.api.delete::<IgnoredAny>(&path, &options).await {
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                outcome => {
                    outcome?;
                    info!(set = set.metadata.name, virtual_cluster = name, "deleted: its value no longer exists");
                    self.event(set, "Deleted", format!("deleted VirtualCluster {name}: its value no longer exists"))
                        .await?;
                }
            }
        }
        Ok(())
    }

    async fn event(&self, set: &ClusterSet, reason: &'static str, message: String) -> Result<(), ApiError> {
        Event { is_warning: false, reason, message }.send(&self.api, (KIND, &set.metadata), Moment::now()).await
    }

    /// Writes the status, and an Event if the condition changes.
    async fn tell(
        &self,
        set: &ClusterSet,
        objects: &Objects,
        plan: &Plan,
        (reason, message): (&'static str, String),
        memory: &mut Memory,
    ) -> Result<(), ApiError> {
        let (before, now) = (set.status(), Moment::now());
        let is_complete = reason == "Complete";
        let text = if is_complete { "True" } else { "False" };
        let same = before.conditions.first().filter(|condition| condition.status == text);
        let condition = Condition {
            kind: "Complete".to_owned(),
            status: text.to_owned(),
            reason: reason.to_owned(),
            message: message.chars().take(MAX_MESSAGE).collect(),
            last_transition_time: same.map_or(now, |same| same.last_transition_time),
            observed_generation: set.metadata.generation,
        };
        let is_ready = |name: &&String| objects.get(*name).is_some_and(|object| object.status().is_ready());
        let status = SetStatus {
            observed_generation: set.metadata.generation,
            clusters: plan.own.len(),
            ready: plan.own.iter().filter(is_ready).count(),
            conditions: vec![condition],
        };
        let is_echo_late =
            memory.written.as_ref().is_some_and(|(written, at)| *written == status && at.elapsed() < ECHO);
        if status == before || is_echo_late {
            return Ok(());
        }
        let metadata = &set.metadata;
        let applied = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": metadata.name, "uid": metadata.uid}, "status": status,
        });
        let path = format!("{PATH}/{}/status?fieldManager=proxy-agent&force=true", metadata.name);
        match self.api.apply(&path, &applied).await {
            // It has been deleted, or deleted and created again.
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            outcome => outcome?,
        };
        let is_new = before.conditions.first().is_none_or(|before| before.reason != reason);
        memory.written = Some((status, Instant::now()));
        if is_new && !is_complete {
            let event = Event { is_warning: true, reason, message: message.chars().take(MAX_MESSAGE).collect() };
            event.send(&self.api, (KIND, metadata), now).await?;
        }
        Ok(())
    }
}

fn complete(plan: &Plan, spec: &SetSpec) -> String {
    if plan.obsolete.is_empty() {
        return "there is a VirtualCluster for each value".to_owned();
    }
    let mut names: Vec<_> = plan.obsolete.iter().take(5).map(String::as_str).collect();
    if plan.obsolete.len() > names.len() {
        names.push("...");
    }
    let names = names.join(", ");
    match spec.deletion_policy {
        DeletionPolicy::Orphan => format!("these VirtualClusters stay although their values no longer exist: {names}"),
        DeletionPolicy::Delete => {
            format!("these VirtualClusters will be deleted, because their values no longer exist: {names}")
        }
    }
}

#[cfg(test)]
mod tests;
