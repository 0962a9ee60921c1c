//! Dates and lengths of time, as people and machines read them.

use std::fmt;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// A moment, to the second: `2026-05-01T12:00:00Z` (RFC 3339), as `metav1.Time` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

/// A length of time, cut to one unit as `kubectl get` does: `41s`, `12m`, `5h`, `3d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub Duration);

// === impl Moment ===

impl Moment {
    /// Now.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// How long before `now` this was; zero if it is in the future.
    pub fn age(self, now: SystemTime) -> Age {
        Age(now.duration_since(self.0).unwrap_or_default())
    }

    /// The moment.
    pub fn time(self) -> SystemTime {
        self.0
    }
}

impl From<SystemTime> for Moment {
    /// Rounded down to the second. Times before 1970 become 1970.
    fn from(time: SystemTime) -> Self {
        let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Self(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No date that is written here is after the year 9999 (RFC 5280 section 4.1.2.5).
        Timestamp::try_from(self.0).unwrap_or(Timestamp::MAX).fmt(f)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let timestamp: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(SystemTime::from(timestamp).into())
    }
}

// === impl Age ===

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (count, unit) = match seconds {
            0..120 => (seconds, 's'),
            120..7_200 => (seconds / 60, 'm'),
            7_200..172_800 => (seconds / 3600, 'h'),
            _ => (seconds / DAY.as_secs(), 'd'),
        };
        f.pad(&format!("{count}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let moment = Moment::from(SystemTime::UNIX_EPOCH + 365 * DAY + Duration::from_millis(1500));
        let json = serde_json::to_string(&moment).unwrap();
        assert_eq!(json, "\"1971-01-01T00:00:01Z\"");
        assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        assert_eq!(moment.age(moment.time() + DAY), Age(DAY));
        assert_eq!(moment.age(SystemTime::UNIX_EPOCH), Age(Duration::ZERO));
    }

    #[test]
    fn ages_are_cut_to_one_unit() {
        for (seconds, text) in [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")] {
            assert_eq!(Age(Duration::from_secs(seconds)).to_string(), text);
        }
    }
}
