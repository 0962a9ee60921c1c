//! Lengths of time as Kubernetes writes them: `10s`, `1m30s`, `250ms`.

use std::fmt;
use std::str::FromStr;
use std::time;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time, written as whole numbers with units, the largest unit first: `1h30m`, `10s`, `250ms`.
///
/// This is the unambiguous part of `metav1.Duration` (Go's `time.ParseDuration`): no fractions, no sign, no unit below
/// the millisecond, no unit twice. A number without a unit is refused, except `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(time::Duration);

/// The text is not a [`Duration`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration such as 10s, 1m30s or 250ms: {reason}")]
pub struct InvalidDuration {
    text: String,
    reason: &'static str,
}

/// Largest first; the text before a unit is matched against the longest name, so `ms` is never read as `m`.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

// === impl Duration ===

impl Duration {
    /// A length of time, rounded down to milliseconds.
    pub fn new(duration: time::Duration) -> Self {
        let below = duration.subsec_nanos() % 1_000_000;
        Self(duration.saturating_sub(time::Duration::from_nanos(below.into())))
    }

    /// The same as the standard library's type.
    pub fn get(self) -> time::Duration {
        self.0
    }
}

impl From<Duration> for time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl FromStr for Duration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        milliseconds(text)
            .map(|total| Self(time::Duration::from_millis(total)))
            .map_err(|reason| InvalidDuration { text: text.chars().take(40).collect(), reason })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (name, size) in UNITS {
            let count = rest / u128::from(size);
            rest %= u128::from(size);
            if count > 0 {
                write!(f, "{count}{name}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

fn milliseconds(text: &str) -> Result<u64, &'static str> {
    if text == "0" {
        return Ok(0);
    }
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (number, after) = split(rest, u8::is_ascii_digit);
        let (name, after) = split(after, u8::is_ascii_alphabetic);
        let count: u64 = match number {
            "" => return Err("a number is missing"),
            number => number.parse().map_err(|_| "too long")?,
        };
        if name.is_empty() {
            return Err("a unit (h, m, s or ms) is missing");
        }
        // The iterator continues after the last unit, so a larger or equal unit cannot follow.
        let (_, size) =
            units.find(|(unit, _)| *unit == name).ok_or("units are h, m, s and ms, each once, the largest first")?;
        total = count.checked_mul(*size).and_then(|part| total.checked_add(part)).ok_or("too long")?;
        rest = after;
    }
    if text.is_empty() { Err("it is empty") } else { Ok(total) }
}

/// The longest prefix of `text` whose bytes are all `ours`, and the rest. `ours` must hold for ASCII only.
fn split(text: &str, ours: fn(&u8) -> bool) -> (&str, &str) {
    let end = text.bytes().take_while(ours).count();
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_of_kubernetes_are_read() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("1h", 3_600_000),
            ("2h45m", 9_900_000),
            ("1s500ms", 1_500),
            ("90m", 5_400_000),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.get().as_millis(), milliseconds, "{text}");
        }
    }

    #[test]
    fn ambiguous_durations_are_refused() {
        for text in [
            "",
            "10",
            "s",
            "1.5h",
            "-1s",
            "+1s",
            "1d",
            "30s1m",
            "1s1s",
            "1 s",
            " 1s",
            "1µs",
            "1S",
            "99999999999999999999s",
            "18446744073709551615h",
            "18446744073709551615ms1s",
            "é",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(milliseconds in any::<u64>()) {
            let duration = Duration::new(time::Duration::from_millis(milliseconds));
            prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            if let Ok(duration) = text.parse::<Duration>() {
                prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
            }
        }
    }
}
