//! A change of a list.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

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
    /// The object as a `T`.
    pub(super) fn parsed<T: DeserializeOwned>(self) -> Result<Change<T>, serde_json::Error> {
        Ok(match self {
            Self::Applied(object) => Change::Applied(serde_json::from_str(object.get())?),
            Self::Deleted(object) => Change::Deleted(serde_json::from_str(object.get())?),
            Self::Synced => Change::Synced,
        })
    }
}
