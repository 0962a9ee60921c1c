//! Patches: three kinds that say what to change, and apply, which says what should be.

mod apply;
mod fields;
mod json;
mod keys;
mod managed;
mod strategic;

use kube_wire::Status;
use kube_wire::media::BodyType;
use serde_json::Value;

pub(crate) use apply::{Applied, apply, first_apply};
pub(crate) use managed::note;

/// `MaxJSONPatchOperations` in apiserver's `patch.go`.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a patch that is no server-side apply.
pub(crate) fn patched(patch_type: BodyType, live: &Value, patch: &Value) -> Result<Value, Status> {
    let mut patched = live.clone();
    match patch_type {
        BodyType::JsonPatch => {
            let Some(operations) = patch.as_array() else {
                return Err(Status::bad_request("a JSON patch is a list of operations"));
            };
            if operations.len() > MOST_OPERATIONS {
                let message = format!("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}");
                return Err(Status::request_entity_too_large(&message));
            }
            json::patch(&mut patched, operations).map_err(|json::NotApplicable| Status::patch_does_not_apply())?;
        }
        BodyType::MergePatch if patch.is_object() => json::merge(&mut patched, patch),
        BodyType::StrategicMergePatch if patch.is_object() => strategic::merge(&mut patched, patch),
        _ => return Err(Status::bad_request("the patch is no object")),
    }
    if !patched.is_object() {
        return Err(Status::bad_request("the patch leaves no object"));
    }
    Ok(patched)
}
