//! Patches: JSON patch, merge patch, strategic merge patch, and server-side apply.

mod apply;
mod fields;
mod json;
mod keys;
mod managed;
mod strategic;

use kube_wire::Status;
use kube_wire::media::BodyType;
use serde_json::Value;

pub(crate) use apply::{ApplyOptions, apply, first_apply};
pub(crate) use managed::record;

/// The maximum number of operations in a JSON patch (`maxJSONPatchOperations` in apiserver's `patch.go`).
const MAX_OPERATIONS: usize = 10_000;

/// Applies a patch of another type than server-side apply.
pub(crate) fn patched(patch_type: BodyType, live: &Value, patch: &Value) -> Result<Value, Status> {
    let mut patched = live.clone();
    match patch_type {
        BodyType::JsonPatch => {
            let Some(operations) = patch.as_array() else {
                return Err(Status::bad_request("a JSON patch must be a list of operations"));
            };
            if operations.len() > MAX_OPERATIONS {
                let message = format!(
                    "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                    operations.len()
                );
                return Err(Status::request_entity_too_large(&message));
            }
            json::patch(&mut patched, operations).map_err(|json::NotApplicable| Status::patch_does_not_apply())?;
        }
        BodyType::MergePatch if patch.is_object() => json::merge(&mut patched, patch),
        BodyType::StrategicMergePatch if patch.is_object() => strategic::merge(&mut patched, patch),
        _ => return Err(Status::bad_request("the patch must be an object")),
    }
    if !patched.is_object() {
        return Err(Status::bad_request("the result of the patch must be an object"));
    }
    Ok(patched)
}
