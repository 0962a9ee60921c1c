//! Whether two values are the same, without comparing large maps.

use std::sync::Arc;

/// Values with large parts that are shared.
pub trait Same {
    /// Whether both are the same. Parts that are shared count as the same only if they are at the same place in memory, so the
    /// result can be `false` for equal values.
    #[must_use]
    fn is_same(&self, other: &Self) -> bool;
}

impl<T> Same for Arc<T> {
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}

impl<T: Same> Same for Option<T> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}
