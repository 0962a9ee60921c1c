//! The attacker's process, as the measurement sees it.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::attacker::{Args, BEGUN};

/// A running attacker.
pub(crate) struct AttackerProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

// === impl AttackerProcess ===

impl AttackerProcess {
    /// Starts the process with the lowest priority, and waits until it begins.
    pub(crate) fn start(args: &Args) -> anyhow::Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe()?).arg("perform").args(args.arguments());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let first = lines.next().context("the attacker has printed nothing")??;
        ensure!(first == BEGUN, "the attacker printed {first:?} instead of {BEGUN:?}");
        Ok(Self { child, lines })
    }

    /// Waits for the end. Returns how often the attacker got each response.
    pub(crate) fn wait(mut self) -> anyhow::Result<Vec<(String, u64)>> {
        let mut responses = Vec::new();
        for line in self.lines {
            let line = line?;
            let (times, response) = line.split_once(' ').context("no number")?;
            responses.push((response.to_owned(), times.parse()?));
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "the attacker ended with {status}");
        Ok(responses)
    }
}
