//! Dates and lengths of time, as people at a terminal read them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// A day.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// `2026-05-01T12:00:00Z`.
pub(crate) fn date(time: SystemTime) -> String {
    // Beyond the year 9999 no certificate can go (RFC 5280 section 4.1.2.5).
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let timestamp = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    timestamp.unwrap_or(Timestamp::MAX).to_string()
}

/// `41s`, `12m`, `5h`, `3d`: as `kubectl get` writes an age, cut to one unit.
pub(crate) fn age(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / DAY.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(date(SystemTime::UNIX_EPOCH + 365 * DAY), "1971-01-01T00:00:00Z");
        for (seconds, text) in [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
