//! Tells the user what a slow command does. Standard output is for the result.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two lines.
const INTERVAL: Duration = Duration::from_secs(3);

/// Prints a line now and then.
#[derive(Debug)]
pub(super) struct Progress {
    last: Instant,
}

// === impl Progress ===

impl Progress {
    /// Prints nothing for the first seconds.
    pub(super) fn new() -> Self {
        Self { last: Instant::now() }
    }

    /// Prints the line, unless the last one is too recent.
    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.last.elapsed() >= INTERVAL {
            self.last = Instant::now();
            note(&line());
        }
    }
}

/// Prints a line.
#[expect(clippy::print_stderr, reason = "standard output is for the result")]
pub(super) fn note(line: &str) {
    eprintln!("atoll: {line}");
}
