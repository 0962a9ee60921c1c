//! JSON as Go writes it.

use serde::{Deserialize, Deserializer};

/// Go writes an empty list or map without `omitempty` as `null`.
pub(super) fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
