//! The controllers of kube-controller-manager, a scheduler, and simulated nodes.
//!
//! One task runs all of them. It follows the changes in the store and reconciles each namespace that has changed. Its own
//! writes are changes too, so it continues until the state is stable. Reconciliation depends only on the present state,
//! and is idempotent.
//!
//! Reading order: [`run`], then a controller per file. `status` and `pods` are what they share.

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
mod quota;
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

/// Reconciles until the server ends.
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

/// The namespaces that have changed since a revision. If a node has changed, all.
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
        kubelet.sync(state, namespace, now);
        namespace::delete_content(state, &found);
        return;
    }
    account::ensure(state, namespace, issuer.serving_ca);
    account::issue_tokens(state, namespace, issuer);
    for (group, resource, sync) in CONTROLLERS {
        let owners: Vec<_> = state.list(kinds::of(group, resource), Some(namespace)).cloned().collect();
        for owner in owners.iter().filter(|owner| !object::is_deleted(owner)) {
            sync(state, owner);
        }
    }
    scheduler::schedule(state, namespace);
    kubelet.sync(state, namespace, now);
    endpoints::sync(state, namespace);
    for (group, resource, sync) in COUNTERS {
        let found: Vec<_> = state.list(kinds::of(group, resource), Some(namespace)).cloned().collect();
        for object in &found {
            sync(state, object);
        }
    }
}

type Sync = fn(&mut State, &Arc<Value>);

/// The controllers of workloads, owners before dependents.
const CONTROLLERS: [(&str, &str, Sync); 5] = [
    ("apps", "deployments", deployment::sync),
    ("apps", "replicasets", replica_set::sync),
    ("apps", "daemonsets", daemon_set::sync),
    ("apps", "statefulsets", stateful_set::sync),
    ("batch", "jobs", job::sync),
];

/// The controllers that count objects. They run last.
const COUNTERS: [(&str, &str, Sync); 2] =
    [("policy", "poddisruptionbudgets", budget::sync), ("", "resourcequotas", quota::sync)];

#[cfg(test)]
mod tests;
