//! Time, as the driver reports it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time: the time since an origin that the driver chooses. It never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

// === impl Moment ===

impl Moment {
    /// The point in time that is this long after the origin.
    pub fn after_origin(since: Duration) -> Self {
        Self(since)
    }

    /// The time since an earlier point in time, or zero if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}
