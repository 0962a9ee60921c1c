//! Runs a step on one side.
//!
//! The steps of a script share a [`Stage`]: a directory, stored outputs, and a `kubectl proxy`. This module runs
//! commands that end by themselves. Other modules interact with a running kubectl.

mod follow;
mod forward;
mod outcome;
mod request;
mod running;
mod terminal;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use self::outcome::CONDITION_TIMEOUT;
pub(super) use self::outcome::Outcome;
use self::request::Proxy;
use super::script::Action;
use super::side::Side;
use crate::eventually;

/// The state of a script on one side.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    side: &'a Side,
    folder: TempDir,
    variables: BTreeMap<String, String>,
    proxy: Option<Proxy>,
}

// === impl Stage ===

impl<'a> Stage<'a> {
    /// Starts with an empty directory.
    pub(super) fn new(side: &'a Side) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("atoll-stage-").tempdir()?;
        Ok(Self { side, folder, variables: BTreeMap::new(), proxy: None })
    }

    /// Runs an action. Returns `None` if its outcome is not compared, and an error if the script cannot continue.
    pub(super) fn act(&mut self, action: &Action) -> anyhow::Result<Option<Outcome>> {
        let folder = self.folder.path();
        Ok(match action {
            Action::Run { words, input, editor } => {
                let mut command = self.side.kubectl(&self.expand_all(words), folder);
                Some(run(command.env("KUBE_EDITOR", editor), &self.expand(input))?)
            }
            Action::Wait { words, shows } => {
                self.wait(&self.expand_all(words), shows)?;
                None
            }
            Action::Set { name, words } => {
                let outcome = run(&mut self.side.kubectl(&self.expand_all(words), folder), "")?;
                ensure!(outcome.code == 0, "kubectl ended with {}: {}", outcome.code, outcome.stderr);
                self.variables.insert(format!("${{{name}}}"), outcome.stdout.trim().to_owned());
                None
            }
            Action::File { name, text } => {
                std::fs::write(folder.join(name), self.expand(text))?;
                None
            }
            Action::Terminal { words, turns, hang_up } => Some(terminal::interact(
                &mut self.side.kubectl_on_terminal(&self.expand_all(words), folder),
                turns,
                *hang_up,
            )?),
            Action::Follow { words, meanwhile, until } => {
                let mut command = self.side.kubectl(&self.expand_all(words), folder);
                Some(follow::follow(&mut command, until, || {
                    for words in meanwhile {
                        let outcome = run(&mut self.side.kubectl(&self.expand_all(words), folder), "")?;
                        ensure!(outcome.code == 0, "kubectl {words:?} ended with an error: {}", outcome.stderr);
                    }
                    Ok(())
                })?)
            }
            Action::Forward { words, send } => {
                Some(forward::forward(&mut self.side.kubectl(&self.expand_all(words), folder), send)?)
            }
            Action::Request { method, path, headers, body } => {
                let (path, body) = (self.expand(path), self.expand(body));
                if self.proxy.is_none() {
                    self.proxy = Some(Proxy::start(self.side, folder)?);
                }
                let proxy = self.proxy.as_ref().context("just started")?;
                Some(proxy.request(method, &path, headers, &body)?)
            }
        })
    }

    /// Runs a command that must succeed and whose output is ignored.
    pub(super) fn must(&self, words: &[&str], input: &str) -> anyhow::Result<()> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        let outcome = run(&mut self.side.kubectl(&words, self.folder.path()), input)?;
        ensure!(outcome.code == 0, "kubectl {words:?} ended with {}: {}", outcome.code, outcome.stderr);
        Ok(())
    }

    fn wait(&self, words: &[String], shows: &[String]) -> anyhow::Result<()> {
        eventually(CONDITION_TIMEOUT, || {
            let outcome = run(&mut self.side.kubectl(words, self.folder.path()), "")?;
            if outcome.code == 0 && shows.iter().all(|text| outcome.stdout.contains(text)) {
                return Ok(());
            }
            bail!("kubectl ended with {}:\n{}{}", outcome.code, outcome.stdout, outcome.stderr)
        })
    }

    fn expand_all(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.expand(word)).collect()
    }

    /// Replaces variables by their values.
    fn expand(&self, text: &str) -> String {
        self.variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// Runs a command to its end.
fn run(command: &mut Command, input: &str) -> anyhow::Result<Outcome> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start kubectl")?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let input = input.to_owned();
    // kubectl may end without reading its input. Ignore the error.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    Ok(Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
