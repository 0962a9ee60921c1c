//! Interactive commands on a terminal.

use std::process::Command;

use super::outcome::Outcome;
use super::running::Running;
use crate::compare::script::Turn;

/// Performs the turns in order. Then it waits for the end of the command, or ends it if `hang_up` is set.
///
/// A `type` needs an `expect` before it. Until kubectl has switched the terminal to raw mode, the terminal echoes the
/// input, and the output would sometimes have one more line.
pub(super) fn interact(command: &mut Command, turns: &[Turn], hang_up: bool) -> anyhow::Result<Outcome> {
    let mut running = Running::start(command)?;
    let mut at = 0;
    for turn in turns {
        match turn {
            Turn::Expect(text) => at = running.until(text, at)?,
            Turn::Type(line) => running.write(&format!("{line}\n"))?,
        }
    }
    let code = if hang_up { 0 } else { running.finish()? };
    let shown = running.output();
    // The output after the last expected text depends on the time of the end.
    let shown = if hang_up { shown.get(..at).unwrap_or(&shown) } else { &shown };
    Ok(Outcome { code, ..Outcome::ended(shown.replace('\r', "")) })
}
