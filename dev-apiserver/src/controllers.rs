//! What happens by itself: workloads become pods, pods get nodes and run, what has lost its owner goes, namespaces end.
//!
//! One task does it all. It follows the changes and, for each namespace in which something changed, compares what is
//! with what should be; its own writes are changes too, so it goes on until nothing is left to do. Everything here looks
//! at the present state only and may be repeated at any time.

mod account;
mod budget;
mod daemon_set;
mod deployment;
mod endpoints;
mod event;
mod garbage;
mod history;
mod job;
mod kubelet;
mod namespace;
mod node_fit;
mod pods;
mod replica_set;
mod scheduler;
mod stateful_set;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::api::Api;
use crate::kinds;
use crate::object;
use crate::store::State;
use account::Issuer;
use kubelet::Kubelet;

/// Works until the server ends.
pub(crate) async fn run(api: Arc<Api>) {
    let mut revision = api.store.subscribe();
    let mut kubelet = Kubelet::default();
    let issuer = Issuer { serving_ca: &api.serving_ca, tokens: &api.tokens };
    let mut seen = 0;
    loop {
        let dirty = api.store.read(|state| {
            let dirty = dirty(state, seen);
            seen = state.revision();
            dirty
        });
        let now = Instant::now();
        let due = kubelet.due(now);
        if dirty.is_empty() && due.is_empty() {
            tokio::select! {
                () = api.tasks.cancelled() => return,
                changed = revision.changed() => if changed.is_err() { return },
                () = until(kubelet.next()) => {}
            }
            continue;
        }
        for namespace in dirty.into_iter().chain(due) {
            api.store.write(|state| reconcile(state, &namespace, &issuer, &mut kubelet, now));
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The namespaces to look at; all of them if something changed that concerns all.
fn dirty(state: &State, seen: u64) -> BTreeSet<String> {
    let namespaces = kinds::of("", "namespaces");
    let all = || state.list(namespaces, None).map(|namespace| object::name(namespace).to_owned()).collect();
    let Ok(changes) = state.changes_after(seen) else { return all() };
    let mut dirty = BTreeSet::new();
    for change in changes {
        if change.kind.namespaced {
            dirty.insert(object::namespace(&change.object).to_owned());
        } else if change.kind.is_namespace() {
            dirty.insert(object::name(&change.object).to_owned());
        } else if change.kind.resource == "nodes" {
            return all();
        }
    }
    dirty
}

fn reconcile(state: &mut State, namespace: &str, issuer: &Issuer<'_>, kubelet: &mut Kubelet, now: Instant) {
    let Some(found) = state.get(kinds::of("", "namespaces"), "", namespace).cloned() else { return };
    garbage::collect(state, namespace);
    if object::is_deleted(&found) {
        kubelet.run(state, namespace, now);
        namespace::finish(state, &found);
        return;
    }
    account::ensure(state, namespace, issuer.serving_ca);
    account::give_tokens(state, namespace, issuer);
    for (group, resource, control) in CONTROLLERS {
        let owners: Vec<_> = state.list(kinds::of(group, resource), Some(namespace)).cloned().collect();
        for owner in owners.iter().filter(|owner| !object::is_deleted(owner)) {
            control(state, owner);
        }
    }
    scheduler::schedule(state, namespace);
    kubelet.run(state, namespace, now);
    endpoints::publish(state, namespace);
    for (group, resource, control) in COUNTERS {
        let found: Vec<_> = state.list(kinds::of(group, resource), Some(namespace)).cloned().collect();
        for object in &found {
            control(state, object);
        }
    }
}

type Control = fn(&mut State, &Arc<Value>);

/// In the order in which work flows down.
const CONTROLLERS: [(&str, &str, Control); 5] = [
    ("apps", "deployments", deployment::control),
    ("apps", "replicasets", replica_set::control),
    ("apps", "daemonsets", daemon_set::control),
    ("apps", "statefulsets", stateful_set::control),
    ("batch", "jobs", job::control),
];

/// After everything else, since they say what there is.
const COUNTERS: [(&str, &str, Control); 2] =
    [("policy", "poddisruptionbudgets", budget::control), ("", "resourcequotas", budget::count)];

#[cfg(test)]
mod tests;
