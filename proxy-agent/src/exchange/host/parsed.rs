//! Objects of the host in parsed form.

use kube_wire::Status;
use rewrite::json::{MAX_WEIGHT, weight};
use serde_json::Value;

use crate::refusal::Refusal;

/// The limit for the parsed form of an object from the host, in bytes.
pub(crate) const MAX_LIVE: usize = MAX_WEIGHT / 2;

/// Parses an object from the host. The limit of requests does not apply to its size.
pub(crate) fn tree(object: &[u8]) -> Result<Value, Refusal> {
    if weight(object) > MAX_LIVE {
        return Err(too_many_parts());
    }
    serde_json::from_slice(object).map_err(|error| Refusal::Unreadable(error.to_string()))
}

/// The refusal to change an object of the host whose parsed form would need too much memory.
pub(crate) fn too_many_parts() -> Refusal {
    let message = "the object has too many fields and elements to be changed in this way through a virtual cluster";
    Status::request_entity_too_large(message).into()
}
