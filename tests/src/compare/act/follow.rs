//! Commands that do not end by themselves.

use std::process::Command;

use super::outcome::Outcome;
use super::running::Running;

/// Reads the output up to the line that contains `until`. Calls `meanwhile` after the first line, so that the command
/// has started to follow before anything changes.
pub(super) fn follow(
    command: &mut Command,
    until: &str,
    meanwhile: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let mut running = Running::start(command)?;
    running.until("\n", 0)?;
    meanwhile()?;
    let at = running.until(until, 0)?;
    let end = running.until("\n", at)?;
    let output = running.output();
    Ok(Outcome::ended(output.get(..end).unwrap_or(&output).to_owned()))
}
