//! What an agent writes to the status of a VirtualCluster.

use ops::date::Moment;

use super::facts::Facts;
use super::kubeconfigs::{KubeconfigState, SeenKubeconfig};
use super::object::Declared;
use super::ready::{MAX_MESSAGE, Ready};
use super::status::{Condition, KUBECONFIG_ISSUED, LastError, READY, SecretReference, Status};

/// The type of the condition that tells whether other virtual clusters have nodes of the cluster.
const OVERLAPPING: &str = "Overlapping";
/// The maximum number of clusters that a message names.
const NAMED: usize = 10;
/// The largest message of an error, in characters.
const MAX_ERROR: usize = 256;

/// The status to write. `None` if the one that the object has is still right.
pub(super) fn next_status(object: &Declared, ready: &Ready, facts: Option<&Facts>, now: Moment) -> Option<Status> {
    let before = object.status();
    let generation = object.metadata.generation;
    let condition = |kind: &str, is_true, reason: &str, message: String| {
        let status = if is_true { "True" } else { "False" };
        let same = before.condition(kind).filter(|before| before.status == status);
        Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: same.map_or(now, |before| before.last_transition_time),
            observed_generation: generation,
        }
    };
    let mut conditions = vec![condition(READY, ready.is_ready, ready.reason, ready.message.clone())];
    if let Some(facts) = facts {
        let is_overlapping = !facts.shared_with.is_empty();
        let reason = if is_overlapping { "SharedNodes" } else { "OwnNodes" };
        conditions.push(condition(OVERLAPPING, is_overlapping, reason, overlap(facts)));
    }
    // What was seen of a former generation, or of a deleted object with this name, says nothing about this one.
    let is_current = |seen: &&SeenKubeconfig| seen.uid == object.metadata.uid && seen.generation == generation;
    let kubeconfig = facts.and_then(|facts| facts.kubeconfig.as_ref()).filter(is_current).map(|seen| &seen.state);
    conditions.extend(kubeconfig.map(|state| match state {
        KubeconfigState::Issued { expiry, .. } => {
            let message = format!("the certificate expires at {expiry}, and the agent renews it before then");
            condition(KUBECONFIG_ISSUED, true, "Issued", message)
        }
        KubeconfigState::Failed(error) => {
            let message = error.message.chars().take(MAX_MESSAGE).collect();
            condition(KUBECONFIG_ISSUED, false, error.reason.as_str(), message)
        }
    }));
    // Nothing is known right after a restart of the agent, or after a change of the object.
    let is_unknown = kubeconfig.is_none() && object.spec().is_ok_and(|spec| spec.kubeconfig.is_some());
    conditions.extend(before.condition(KUBECONFIG_ISSUED).filter(|_| is_unknown).cloned());
    let kubeconfig_secret = kubeconfig.and_then(|state| match state {
        KubeconfigState::Issued { namespace, name, .. } => {
            Some(SecretReference { namespace: namespace.to_string(), name: name.clone() })
        }
        // The former kubeconfig may still be valid.
        KubeconfigState::Failed(_) => before.kubeconfig_secret.clone(),
    });
    let kubeconfig_secret = kubeconfig_secret.or_else(|| before.kubeconfig_secret.clone().filter(|_| is_unknown));
    let status = Status {
        observed_generation: generation,
        // It does not change when the tunnel is interrupted.
        endpoint: facts.and_then(|facts| facts.endpoint.clone()).or_else(|| before.endpoint.clone()),
        nodes: facts.map_or(0, |facts| facts.nodes),
        namespaces: facts.map_or(0, |facts| facts.namespaces),
        last_error: newer(&before, facts),
        kubeconfig_secret,
        conditions,
    };
    (status != before).then_some(status)
}

/// Replicas of the agent have different errors. The newest one counts.
fn newer(before: &Status, facts: Option<&Facts>) -> Option<LastError> {
    let ours = facts
        .and_then(|facts| facts.last_error.clone())
        .map(|error| LastError { message: error.message.chars().take(MAX_ERROR).collect(), ..error });
    let theirs = before.last_error.clone();
    if ours.as_ref().map(|error| error.time) > theirs.as_ref().map(|error| error.time) { ours } else { theirs }
}

fn overlap(facts: &Facts) -> String {
    let count = facts.shared_with.len();
    if count == 0 {
        return "it shares no nodes with other virtual clusters of this agent".to_owned();
    }
    let named: Vec<_> =
        facts.shared_with.iter().take(NAMED).map(|(cluster, node)| format!("{cluster} (such as {node})")).collect();
    let rest = if count > NAMED { format!(" and {} others", count - NAMED) } else { String::new() };
    format!(
        "it shares nodes with {}{rest}: a process that escapes its container on a shared node can access the pods and the \
         Secrets of all of them",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests;
