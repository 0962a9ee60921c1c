//! Tells the user what happens, and how long it took.

use std::time::SystemTime;

/// The steps of a build.
#[derive(Debug)]
pub(crate) struct Progress {
    steps: usize,
    done: usize,
    begun: SystemTime,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps, done: 0, begun: SystemTime::now() }
    }

    /// Runs the next step.
    pub(crate) fn step<T>(&mut self, what: &str, run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        self.done += 1;
        say(&format!("[{}/{}] {what}", self.done, self.steps));
        let begun = SystemTime::now();
        let result = run()?;
        say(&format!("[{}/{}] {what}: {} s", self.done, self.steps, seconds_since(begun)));
        Ok(result)
    }

    /// The time since the first step began, in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        seconds_since(self.begun)
    }
}

/// Prints a line.
#[expect(clippy::print_stdout, reason = "a task talks to the person who runs it")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

fn seconds_since(begun: SystemTime) -> u64 {
    begun.elapsed().unwrap_or_default().as_secs()
}
