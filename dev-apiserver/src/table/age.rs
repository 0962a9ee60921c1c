//! Ages, as in `kubectl get`.

use jiff::Timestamp;
use serde_json::Value;

/// The time since a timestamp, such as `5s`, `3m12s` or `2d4h` (`duration.HumanDuration` in apimachinery).
pub(super) fn since(time: &Value) -> String {
    let parsed = time.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let Some(then) = parsed else { return "<unknown>".to_owned() };
    human(Timestamp::now().as_second() - then.as_second())
}

/// A duration in seconds.
pub(super) fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let with = |large: i64, unit: char, small: i64, part: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{part}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => with(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => with(days / 365, 'y', days % 365, 'd'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_durations_are_rounded() {
        for (seconds, shown) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (700, "11m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
        ] {
            assert_eq!(human(seconds), shown);
        }
    }
}
