//! The outcome of a step.

use std::time::Duration;

/// The time limit for a condition that a healthy cluster meets at once.
pub(in crate::compare) const CONDITION_TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compare) struct Outcome {
    /// The exit code: -1 if a signal ended the command, and 0 if the test ended it.
    pub(in crate::compare) code: i32,
    /// Standard output.
    pub(in crate::compare) stdout: String,
    /// Standard error.
    pub(in crate::compare) stderr: String,
}

// === impl Outcome ===

impl Outcome {
    /// The outcome of a command that the test ended after this output.
    pub(super) fn ended(stdout: String) -> Self {
        Self { code: 0, stdout, stderr: String::new() }
    }
}
