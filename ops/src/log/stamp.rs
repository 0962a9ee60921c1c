//! The time at the beginning of each line: `2026-05-01T12:00:00.123456Z`.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::time::SystemTime;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::date::Moment;

/// Writes the time, in the format of `tracing_subscriber`'s own `SystemTime`, which is the oracle of the tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    clock: fn() -> SystemTime,
}

thread_local! {
    /// The last second that was written, and its text without the `Z`. Under load, thousands of lines share a second,
    /// and the date is the expensive part of the text.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

// === impl Stamp ===

impl Stamp {
    /// The time of the system.
    pub(super) fn new() -> Self {
        Self { clock: SystemTime::now }
    }

    #[cfg(test)]
    pub(super) fn of(clock: fn() -> SystemTime) -> Self {
        Self { clock }
    }
}

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = (self.clock)();
        // A clock before 1970 is not set yet.
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        SECOND.with_borrow_mut(|(second, text)| {
            if *second != since_epoch.as_secs() || text.is_empty() {
                *second = since_epoch.as_secs();
                text.clear();
                write!(text, "{}", Moment::from(now))?;
                text.truncate(text.len() - 1);
            }
            writer.write_str(text)
        })?;
        write!(writer, ".{:06}Z", since_epoch.subsec_micros())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written(stamp: Stamp) -> String {
        let mut text = String::new();
        stamp.format_time(&mut Writer::new(&mut text)).unwrap();
        text
    }

    #[test]
    fn a_stamp_has_microseconds_and_changes_with_the_second() {
        let at = |clock| written(Stamp::of(clock));
        assert_eq!(at(|| SystemTime::UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(|| SystemTime::UNIX_EPOCH - Duration::from_secs(5)), "1970-01-01T00:00:00.000000Z");
        let leap_day = || SystemTime::UNIX_EPOCH + Duration::new(1_709_251_199, 999_999_999);
        assert_eq!(at(leap_day), "2024-02-29T23:59:59.999999Z");
        assert_eq!(at(|| SystemTime::UNIX_EPOCH + Duration::new(1_709_251_200, 42_000)), "2024-03-01T00:00:00.000042Z");
        assert_eq!(at(leap_day), "2024-02-29T23:59:59.999999Z");
    }

    #[test]
    fn the_form_is_that_of_tracing_subscriber() {
        let mut theirs = String::new();
        tracing_subscriber::fmt::time::SystemTime.format_time(&mut Writer::new(&mut theirs)).unwrap();
        let ours = written(Stamp::new());
        let form = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "0");
        assert_eq!(form(&ours), form(&theirs));
    }
}
