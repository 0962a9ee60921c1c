//! Output that does not end without a signal.

use std::process::Command;

use super::outcome::Outcome;
use super::running::Running;

/// Reads up to the line that has `until`. `meanwhile` is run once the first line is there, so that what it causes is
/// seen by a command that certainly follows already.
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
