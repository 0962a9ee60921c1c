//! Statuses and conditions.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use crate::store::State;

/// Stores an object if it has changed.
pub(super) fn put_if_changed(state: &mut State, kind: &'static Kind, found: &Value, mut object: Value) {
    object::drop_nulls(&mut object);
    if object != *found {
        state.put(kind, object);
    }
}

/// Stores an object with this status if the status has changed.
pub(super) fn put_status(state: &mut State, kind: &'static Kind, found: &Value, status: Value) {
    let mut object = found.clone();
    object["status"] = status;
    put_if_changed(state, kind, found, object);
}

/// A condition. Its transition time changes only if its status does.
pub(super) fn condition(found: &Value, kind: &str, status: bool, reason: &str, message: &str) -> Value {
    let status = if status { "True" } else { "False" };
    let before = object::items(&found["status"]["conditions"]).iter().find(|condition| condition["type"] == kind);
    let now = object::now();
    let since = |field: &str, is_same: bool| match before {
        Some(before) if is_same && before[field].is_string() => before[field].clone(),
        _ => now.as_str().into(),
    };
    let is_same_status = before.is_some_and(|before| before["status"] == status);
    let is_same =
        is_same_status && before.is_some_and(|before| before["reason"] == reason && before["message"] == message);
    let mut condition = json!({
        "type": kind, "status": status, "lastTransitionTime": since("lastTransitionTime", is_same_status),
    });
    if !reason.is_empty() {
        condition["reason"] = reason.into();
        condition["message"] = message.into();
        condition["lastUpdateTime"] = since("lastUpdateTime", is_same);
    }
    condition
}
