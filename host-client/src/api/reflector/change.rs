//! A change of a list.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::warn;

use super::named::Named;
use crate::api::object::parse;

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T = Value> {
    /// The object exists in this state. This may repeat a known state.
    Applied(T),
    /// The object was deleted. The value is its last state if that is known, and otherwise only `metadata` with `name`,
    /// `namespace` and `uid`.
    Deleted(T),
    /// All objects of a list have been returned. Follows each complete list.
    Synced,
}

// === impl Change ===

impl Change<Box<RawValue>> {
    /// The object as a `T`. One that cannot be parsed counts as deleted, because it must not hide the others. `None` if it has
    /// no name either.
    pub(super) fn parsed<T: DeserializeOwned>(self) -> Option<Change<T>> {
        let (object, is_deleted) = match self {
            Self::Applied(object) => (object, false),
            Self::Deleted(object) => (object, true),
            Self::Synced => return Some(Change::Synced),
        };
        match parse(object.get()) {
            Ok(object) if is_deleted => Some(Change::Deleted(object)),
            Ok(object) => Some(Change::Applied(object)),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, "an object of the host cannot be parsed; continuing as if it were deleted");
                parse(Named::of(&object).ok()?.remains().get()).ok().map(Change::Deleted)
            }
        }
    }
}
