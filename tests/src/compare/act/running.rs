//! A running command whose output is read.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::SystemTime;

use anyhow::{Context, bail};

use super::outcome::CONDITION_TIMEOUT;

/// A command and its output so far. It ends when the handle is dropped.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

// === impl Running ===

impl Running {
    /// Starts a command.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start kubectl")?;
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().context("no stdout")?;
        let (sender, pieces) = mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = vec![0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, stdin, pieces, seen: Vec::new() })
    }

    /// Reads until the output contains `text` at or after `from`. Returns the end of that text.
    pub(super) fn until(&mut self, text: &str, from: usize) -> anyhow::Result<usize> {
        let end = SystemTime::now() + CONDITION_TIMEOUT;
        loop {
            let found = self.seen[from..].windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                return Ok(from + at + text.len());
            }
            let left = end.duration_since(SystemTime::now()).unwrap_or_default();
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.seen.extend(piece),
                Err(error) => bail!("the output does not contain {text:?} ({error}):\n{}", self.output()),
            }
        }
    }

    /// Writes to standard input.
    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let stdin = self.stdin.as_mut().context("standard input is closed")?;
        stdin.write_all(text.as_bytes()).context("the command does not read its input")
    }

    /// The output that was read.
    pub(super) fn output(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Closes standard input, reads the rest of the output, and waits for the end. Returns the exit code.
    pub(super) fn finish(&mut self) -> anyhow::Result<i32> {
        drop(self.stdin.take());
        // timeout(1) ends the command, so the output ends.
        while let Ok(piece) = self.pieces.recv() {
            self.seen.extend(piece);
        }
        Ok(self.child.wait()?.code().unwrap_or(-1))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // timeout(1) forwards SIGTERM to kubectl, but cannot forward SIGKILL.
            let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Running;

    #[test]
    fn input_and_output_alternate() {
        let mut cat = Running::start(&mut Command::new("cat")).unwrap();
        cat.write("one\n").unwrap();
        let at = cat.until("one\n", 0).unwrap();
        cat.write("one\nrest\n").unwrap();
        assert_eq!(cat.until("one\n", at).unwrap(), 8);
        assert_eq!(cat.finish().unwrap(), 0);
        assert_eq!(cat.output(), "one\none\nrest\n");
    }

    #[test]
    fn a_missing_text_is_reported_with_the_output() {
        let mut echo = Running::start(Command::new("echo").arg("something else")).unwrap();
        let error = echo.until("this", 0).unwrap_err().to_string();
        assert!(error.contains("something else"), "{error}");
    }
}
