//! Removes one of them.

use host_client::api::{ApiError, HostApi};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::found::{Found, Hold};
use crate::node_labels;
use crate::shared::handover::MANAGER;
use crate::shared::{HostObject, Instances};

/// The maximum number of attempts if others change an object at the same time.
const MAX_ATTEMPTS: u32 = 10;

/// The object cannot be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// A request to the host failed.
    #[error(transparent)]
    Host(#[from] ApiError),
    /// Others changed the object between each read and write.
    #[error("{0} was changed concurrently at each attempt to write it")]
    Contended(String),
}

/// Removes what belongs to the virtual cluster. An object of its own is deleted. A shared object and a node lose what they have of the virtual
/// cluster. If no other virtual cluster has the object, and it does not belong to the operator, it is deleted. No agent may
/// serve the virtual cluster. An object that has been replaced by another one of the same name stays.
pub async fn remove(api: &impl HostApi, found: &Found) -> Result<(), RemoveError> {
    if found.hold == Hold::Whole {
        return match api.delete::<IgnoredAny>(&found.path, &only(found)).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error.into()),
            _ => Ok(()),
        };
    }
    if found.hold == Hold::Label {
        // Another node of this name has no such label, so the patch changes nothing.
        return Ok(node_labels::remove_from(api, found.name.clone(), &found.cluster).await?);
    }
    for _ in 0..MAX_ATTEMPTS {
        let object = match api.get(&found.path).await {
            Ok(object) => HostObject::new(object),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match leave(api, found, object).await {
            Err(error) if error.is_conflict() => {}
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => return Ok(()),
        }
    }
    Err(RemoveError::Contended(found.path.clone()))
}

/// Options of a deletion that does not delete another object of the same name.
fn only(found: &Found) -> Value {
    json!({"preconditions": {"uid": found.uid}})
}

/// The last virtual cluster deletes the object, as the agent does for a client.
async fn leave(api: &impl HostApi, found: &Found, mut object: HostObject) -> Result<(), ApiError> {
    let cluster = found.cluster.as_str();
    let had_overlay = object.attached().overlay(cluster).is_some();
    let is_last = had_overlay && !object.attached().has_others(cluster);
    let is_operators = object.is_marked() && had_overlay && is_operators(api, &object, is_last).await?;
    if is_last && object.is_marked() && !is_operators {
        let preconditions = json!({"uid": object.text("uid"), "resourceVersion": object.text("resourceVersion")});
        let options = json!({"preconditions": preconditions});
        return api.delete::<IgnoredAny>(&found.path, &options).await.map(drop);
    }
    if is_operators {
        object.hand_over();
    }
    object.forget(cluster);
    api.update(&format!("{}?fieldManager={MANAGER}", found.path), object.value()).await.map(drop)
}

/// Whether the operator owns a part of an object that a virtual cluster created, or has custom objects of such a definition.
async fn is_operators(api: &impl HostApi, object: &HostObject, is_last: bool) -> Result<bool, ApiError> {
    if !object.is_of_clusters() {
        return Ok(true);
    }
    match Instances::of(object) {
        Some(instances) if is_last => instances.any_outside(api, object).await,
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests;
