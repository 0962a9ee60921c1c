//! Writes a VirtualCluster of a set.
//!
//! An apply of an object that does not exist creates it, but merges into one that somebody creates at the same moment. So a new
//! object is created with POST, which fails then. The fields of a POST belong to an `Update` of the field manager, and a later
//! apply without them would leave them. So they are made fields of an `Apply` first, as `kubectl apply --server-side` does it with
//! fields of a client-side apply (client-go's `util/csaupgrade`).

use host_client::api::{ApiError, HostApi};
use serde_json::{Value, json};

use super::super::PATH;
use super::SET_LABEL;
use super::plan::APPLIED;

/// The field manager.
const MANAGER: &str = "proxy-agent-sets";

/// How often a change of somebody else may come in between.
const ATTEMPTS: u32 = 5;

/// Creates or changes a VirtualCluster. Returns whether it has been created here. A 409 means that somebody else has created it,
/// or changes it all the time.
pub(super) async fn apply(api: &impl HostApi, name: &str, object: &Value, is_new: bool) -> Result<bool, ApiError> {
    let path = format!("{PATH}/{name}");
    let mut stored = if is_new {
        match create(api, object).await {
            // Another replica of the agent has just created it, and continues.
            Err(error) if error.is_conflict() && is_of_set(&api.get(&path).await?, object) => return Ok(false),
            created => created?,
        }
    } else {
        api.get(&path).await?
    };
    let uid = stored["metadata"]["uid"].clone();
    for attempt in 1.. {
        let Some(own) = owned(stored) else { break };
        match api.update(&format!("{path}?fieldManager={MANAGER}"), &own).await {
            // The finalizer has come in between.
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => stored = api.get(&path).await?,
            outcome => {
                outcome?;
                break;
            }
        }
    }
    // Only this object, even if it is deleted and created again.
    let mut applied = object.clone();
    applied["metadata"]["uid"] = uid;
    api.apply(&format!("{path}?fieldManager={MANAGER}&force=true"), &applied).await?;
    Ok(is_new)
}

async fn create(api: &impl HostApi, object: &Value) -> Result<Value, ApiError> {
    // Without the annotation, the object is not in force yet, so whatever fails after this is repeated.
    let mut first = object.clone();
    if let Some(annotations) = first["metadata"]["annotations"].as_object_mut() {
        annotations.remove(APPLIED);
    }
    api.create(&format!("{PATH}?fieldManager={MANAGER}"), &first).await
}

fn is_of_set(stored: &Value, object: &Value) -> bool {
    let set = |object: &Value| object["metadata"]["labels"][SET_LABEL].clone();
    !set(object).is_null() && set(stored) == set(object)
}

/// The object with our fields as fields of an apply. `None` if they are already.
fn owned(mut stored: Value) -> Option<Value> {
    let entries = stored["metadata"]["managedFields"].as_array_mut()?;
    let is_ours = |entry: &Value, operation: &str| {
        entry["manager"] == MANAGER && entry["operation"] == operation && entry["subresource"].is_null()
    };
    let has_apply = entries.iter().any(|entry| is_ours(entry, "Apply"));
    let update = entries.iter().position(|entry| is_ours(entry, "Update"))?;
    if has_apply {
        entries.remove(update);
    } else {
        entries[update]["operation"] = json!("Apply");
    }
    Some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_creation_become_fields_of_an_apply() {
        let entry =
            |manager: &str, operation: &str| json!({"manager": manager, "operation": operation, "fieldsV1": {}});
        let with = |entries: &[Value]| json!({"metadata": {"name": "a", "managedFields": entries}});
        let created = with(&[entry(MANAGER, "Update"), entry("kubectl", "Update")]);
        let expected = with(&[entry(MANAGER, "Apply"), entry("kubectl", "Update")]);
        assert_eq!(owned(created), Some(expected.clone()));
        assert_eq!((owned(expected), owned(json!({"metadata": {}}))), (None, None));
        let both = with(&[entry(MANAGER, "Apply"), entry(MANAGER, "Update")]);
        assert_eq!(owned(both), Some(with(&[entry(MANAGER, "Apply")])));
    }
}
