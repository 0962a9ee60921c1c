//! Adds our finalizer to a VirtualCluster, and removes it.

use host_client::api::{ApiError, HostApi};
use serde_json::Value;

use super::object::Declared;
use super::{FINALIZER, PATH};

/// What to do with the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

/// Changes the finalizer of exactly this object, unless somebody changes or deletes it at the same time. The event of that change
/// leads back here. Returns whether the object has been changed.
pub(super) async fn change(api: &impl HostApi, object: &Declared, change: Change) -> Result<bool, ApiError> {
    let path = format!("{PATH}/{}", object.metadata.name);
    let mut stored = match api.get(&path).await {
        Err(error) if error.is_not_found() => return Ok(false),
        stored => stored?,
    };
    let metadata = &mut stored["metadata"];
    let is_same = metadata["uid"] == object.metadata.uid.as_str();
    // The API server refuses new finalizers after the deletion.
    let is_late = change == Change::Add && !metadata["deletionTimestamp"].is_null();
    if !is_same || is_late {
        return Ok(false);
    }
    let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let before = finalizers.len();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if change == Change::Add {
        finalizers.push(FINALIZER.into());
    }
    if finalizers.len() == before {
        return Ok(false);
    }
    metadata["finalizers"] = Value::Array(finalizers);
    match api.update(&path, &stored).await {
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
        outcome => outcome.map(|_| true),
    }
}
