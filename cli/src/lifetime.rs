//! The value of `--lifetime`: how long a certificate is valid.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ops::config;
use ops::pki::MAX_LIFETIME;

const DAY: u64 = 24 * 3600;

/// `365d`, or any duration of a configuration (`12h`, `1h30m`), from a minute to a hundred years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(Duration);

/// The text is not a lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidLifetime;

// === impl Lifetime ===

impl Lifetime {
    /// The duration.
    pub(crate) fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Lifetime {
    type Err = InvalidLifetime;

    fn from_str(text: &str) -> Result<Self, InvalidLifetime> {
        let duration = match text.strip_suffix('d') {
            Some(days) if days.bytes().all(|byte| byte.is_ascii_digit()) => {
                let days: u64 = days.parse().map_err(|_| InvalidLifetime)?;
                Duration::from_secs(days.checked_mul(DAY).ok_or(InvalidLifetime)?)
            }
            _ => text.parse::<config::Duration>().map_err(|_| InvalidLifetime)?.get(),
        };
        if (Duration::from_secs(60)..=MAX_LIFETIME).contains(&duration) {
            Ok(Self(duration))
        } else {
            Err(InvalidLifetime)
        }
    }
}

impl fmt::Display for InvalidLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a duration such as 365d or 12h, between one minute and 100 years")
    }
}

impl std::error::Error for InvalidLifetime {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_durations_are_parsed() {
        for (text, seconds) in [("1d", DAY), ("365d", 365 * DAY), ("12h", 12 * 3600), ("1h30m", 5400), ("1m", 60)] {
            assert_eq!(text.parse(), Ok(Lifetime(Duration::from_secs(seconds))), "{text}");
        }
        for bad in ["", "d", "0d", "-1d", "1", "59s", "36501d", "99999999999999999999d", "1.5d", "+1d"] {
            assert_eq!(bad.parse::<Lifetime>(), Err(InvalidLifetime), "{bad}");
        }
    }
}
