//! Hands a virtual cluster's definition over to the host's operator, if the operator uses it too.
//!
//! If another user manages a part of a definition, or has objects of its kind, a virtual cluster must not be able to
//! delete it. So the agent removes the label that says that the definition belongs to virtual clusters alone.

use std::time::Duration;

use kube_wire::name::SegmentName;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{Definitions, HostObject};
use host_client::api::ApiError;
use host_client::api::HostApi;

/// The minimum interval between two runs, because definitions change often.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The interval of retries if the host does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Hands over every definition that a field manager outside virtual clusters also manages, forever.
pub async fn keep(api: impl HostApi, definitions: &Definitions) {
    let mut changes = definitions.changes();
    loop {
        let mut failed = false;
        for name in definitions.claimed() {
            if let Err(error) =
                hand_over(&api, &name, "a field manager outside virtual clusters manages a part of it").await
            {
                let error: &dyn std::error::Error = &error;
                warn!(error, definition = name, "cannot mark a definition as the operator's yet");
                failed = true;
            }
        }
        if failed {
            let _ = timeout(RETRY_INTERVAL, changes.changed()).await;
        } else if changes.changed().await.is_err() {
            return;
        }
        sleep(MIN_INTERVAL).await;
    }
}

/// Hands a definition over to the operator. Tries again after a concurrent change.
pub async fn hand_over(api: &impl HostApi, name: &str, why: &str) -> Result<(), ApiError> {
    // No definition has a name that is not a valid path segment.
    let Ok(name) = SegmentName::new(name.to_owned()) else { return Ok(()) };
    let path = format!("{}/{name}", super::DEFINITIONS);
    loop {
        let mut definition = match api.get(&path).await {
            Ok(definition) => HostObject::new(definition),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        if !definition.is_marked() {
            return Ok(());
        }
        definition.hand_over();
        match api.update(&format!("{path}?fieldManager={MANAGER}"), definition.value()).await {
            Ok(_) => {
                info!(definition = %name, why, "a definition of virtual clusters now belongs to the operator");
                return Ok(());
            }
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
}

/// The field manager of the agent's writes to the operator's objects; the prefix is [`rewrite::name::MANAGER_PREFIX`].
pub const MANAGER: &str = "atoll:proxy-agent";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provisioner::testing::FakeHost;
    use crate::shared::DEFINITIONS;
    use host_client::api::Change;

    #[tokio::test(start_paused = true)]
    async fn a_definition_with_another_manager_is_handed_over() {
        let host = FakeHost::new();
        let path = format!("{DEFINITIONS}/gears.example.com");
        let definition = |managers: Value| {
            let annotations = json!({"overlay.atoll.dev/ke": "{}"});
            let labels = json!({"atoll.dev/shared": ""});
            let name = "gears.example.com";
            let metadata =
                json!({"name": name, "labels": labels, "annotations": annotations, "managedFields": managers});
            json!({"metadata": metadata})
        };
        host.put(&path, definition(json!([{"manager": "atoll:ke:kubectl", "fieldsV1": {"f:spec": {}}}])));
        let definitions = Definitions::default();
        let deliver = |host: &FakeHost| {
            let definition = serde_json::from_value(host.lock().objects[&path].clone()).unwrap();
            definitions.take(&Change::Applied(definition));
        };
        deliver(&host);
        let changed = async {
            sleep(MIN_INTERVAL * 2).await;
            assert_eq!(host.lock().objects[&path]["metadata"]["labels"], json!({"atoll.dev/shared": ""}));
            host.put(&path, definition(json!([{"manager": "helm", "fieldsV1": {"f:spec": {}}}])));
            host.lock().meddling = 2;
            deliver(&host);
            host.until(|state| state.objects[&path]["metadata"]["labels"] == json!({})).await;
        };
        tokio::select! {
            () = keep(host.clone(), &definitions) => unreachable!("it is kept for ever"),
            () = changed => {}
        }
        assert!(!HostObject::new(host.lock().objects[&path].clone()).is_marked());
    }
}
