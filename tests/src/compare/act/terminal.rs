//! A talk on a terminal.

use std::process::Command;

use super::outcome::Outcome;
use super::running::Running;
use crate::compare::script::Turn;

/// Takes the turns in order, then waits for the command to end, or hangs up.
///
/// What is typed must be awaited by an `expect` before it: as long as kubectl has not put the terminal into raw mode, the
/// terminal itself would echo it, and one more line would show on some days.
pub(super) fn talk(command: &mut Command, turns: &[Turn], hang_up: bool) -> anyhow::Result<Outcome> {
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
    // What comes after the last thing that was expected depends on when we hang up.
    let shown = if hang_up { shown.get(..at).unwrap_or(&shown) } else { &shown };
    Ok(Outcome { code, ..Outcome::ended(shown.replace('\r', "")) })
}
