//! Whether an agent serves a virtual cluster.
//!
//! An agent that serves it repairs its mirrors within a moment. An agent that no longer serves it has removed their finalizers.
//! One that was stopped before has not.

use std::time::Duration;

use anyhow::Context as _;
use host_client::api::{Api, PatchKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use virtual_cluster::provisioner::{CLUSTER_ADMIN, MIRROR_FINALIZER, MIRROR_PREFIX};

use crate::clusters::inventory::Inventory;

/// The time that an agent has to repair a mirror. It normally needs some milliseconds.
const REPAIRED: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Removes the finalizer of a mirror, and waits whether an agent adds it again.
pub(super) async fn is_served(api: &Api, inventory: &Inventory) -> anyhow::Result<bool> {
    let mut namespaces = inventory.namespaces.iter().filter(|it| it.virtual_name.is_some() && !it.is_terminating);
    let Some(namespace) = namespaces.next() else { return Ok(false) };
    let path = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings/{MIRROR_PREFIX}{CLUSTER_ADMIN}",
        namespace.host_name
    );
    let Some(found) = read(api, &path).await? else { return Ok(false) };
    let Some(others) = other_finalizers(&found["metadata"]) else { return Ok(false) };
    let patch = json!({"metadata": {"finalizers": others, "resourceVersion": found["metadata"]["resourceVersion"]}});
    match api.patch(&path, PatchKind::Merge, &patch).await {
        // Something else writes it at this moment.
        Err(error) if error.is_conflict() => return Ok(true),
        Err(error) if error.is_not_found() => return Ok(false),
        outcome => outcome.map(drop).with_context(|| path.clone())?,
    }
    let until = Instant::now() + REPAIRED;
    while Instant::now() < until {
        sleep(POLL_INTERVAL).await;
        if read(api, &path).await?.is_some_and(|found| other_finalizers(&found["metadata"]).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn read(api: &Api, path: &str) -> anyhow::Result<Option<Value>> {
    match api.get(path).await {
        Err(error) if error.is_not_found() => Ok(None),
        found => found.map(Some).with_context(|| path.to_owned()),
    }
}

/// The finalizers except Atoll's. `None` if Atoll's is not among them.
fn other_finalizers(metadata: &Value) -> Option<Vec<&Value>> {
    let finalizers = metadata["finalizers"].as_array()?;
    let others: Vec<_> = finalizers.iter().filter(|one| *one != MIRROR_FINALIZER).collect();
    (others.len() < finalizers.len()).then_some(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_finalizer_of_atoll_is_removed() {
        let left = |finalizers: Value| other_finalizers(&json!({"finalizers": finalizers})).map(|left| json!(left));
        assert_eq!(left(json!([MIRROR_FINALIZER, "theirs"])), Some(json!(["theirs"])));
        assert_eq!(left(json!([MIRROR_FINALIZER])), Some(json!([])));
        assert_eq!(left(json!(["theirs"])), None);
        assert_eq!(left(Value::Null), None);
    }
}
