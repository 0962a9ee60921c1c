//! What a rule reports: the place, the problem, and the remedy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One violation of one rule. Ordered by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: PathBuf,
    /// From 1.
    line: usize,
    problem: String,
    remedy: String,
}

// === impl Finding ===

impl Finding {
    pub(crate) fn new(path: &Path, line: usize, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into(), remedy: remedy.into() }
    }
}

/// `path:line: problem; remedy`, which editors and terminals turn into a link.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path.display(), self.line, self.problem, self.remedy)
    }
}

/// The line, from 1, of a byte of `text`.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|&byte| byte == b'\n').count()
}

/// Prints the findings of a task. The task fails if there are any.
#[expect(clippy::print_stdout, reason = "a task talks to the person who runs it")]
pub(crate) fn report(task: &str, findings: &[Finding], summary: &str) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    println!("{task}: {summary}");
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
