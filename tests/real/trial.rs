//! The trials, their order and their times.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::Trial;
use tokio::time::Instant;

/// How many of the slowest trials are printed.
const PRINTED: usize = 25;

/// The names of ended trials, and how long each ran.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// One trial. Its time counts for [`print_slowest`].
pub(crate) fn trial(name: impl Into<String>, run: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let begun = Instant::now();
        let result = run();
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((begun.elapsed(), name));
        result.map_err(|error| format!("{error:?}").into())
    })
}

/// Inserts trials that wait for each other at equal distances. If they were together, all threads but one would wait.
pub(crate) fn spread(serial: Vec<Trial>, mut others: Vec<Trial>) -> Vec<Trial> {
    let distance = others.len() / serial.len().max(1);
    for (at, trial) in serial.into_iter().enumerate().rev() {
        others.insert(at * distance, trial);
    }
    others
}

/// Prints the slowest trials with their times, which include the time that they wait for others.
#[expect(clippy::print_stdout, reason = "a test runner talks to the terminal")]
pub(crate) fn print_slowest() {
    let mut times = std::mem::take(&mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner));
    times.sort_unstable_by(|a, b| b.cmp(a));
    println!("slowest trials:");
    for (time, name) in times.iter().take(PRINTED) {
        println!("  {:>4} s  {name}", time.as_secs());
    }
}
