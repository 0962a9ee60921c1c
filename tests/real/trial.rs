//! Tests, their order and their durations.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::Trial;
use tokio::time::Instant;

/// The number of slowest tests to print.
const PRINTED: usize = 12;

/// The names and durations of finished tests.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// A test. [`print_slowest`] includes its duration.
pub(crate) fn trial(name: impl Into<String>, run: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let begun = Instant::now();
        let result = run();
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((begun.elapsed(), name));
        result.map_err(|error| format!("{error:?}").into())
    })
}

/// Inserts tests that must not run concurrently at equal distances. Otherwise, they would block all threads but one.
pub(crate) fn spread(serial: Vec<Trial>, mut others: Vec<Trial>) -> Vec<Trial> {
    let distance = others.len() / serial.len().max(1);
    for (at, trial) in serial.into_iter().enumerate().rev() {
        others.insert(at * distance, trial);
    }
    others
}

/// Prints the slowest tests and their durations, which include waiting for other tests.
#[expect(clippy::print_stdout, reason = "a test runner talks to the terminal")]
pub(crate) fn print_slowest() {
    let mut times = std::mem::take(&mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner));
    times.sort_unstable_by(|a, b| b.cmp(a));
    println!("slowest trials:");
    for (time, name) in times.iter().take(PRINTED) {
        println!("  {:>4} s  {name}", time.as_secs());
    }
}
