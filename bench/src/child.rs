//! The processes that a run starts. Each ends with its handle.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// A process that runs until the handle is dropped, and its log.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
    /// The length of the log when the process started.
    offset: usize,
}

// === impl Process ===

impl Process {
    /// Starts a program, and appends its output to `log`.
    pub(crate) fn start(name: &'static str, program: &Path, config: &Path, log: PathBuf) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(&log)?;
        let offset = usize::try_from(output.metadata()?.len())?;
        let mut command = Command::new(program);
        // Do not use a proxy of the environment for loopback. Measure with the default log level.
        command.arg("--config").arg(config).env_remove("HTTPS_PROXY").env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name, child, log, offset })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The number of times that `text` is in the log since the process started. Fails if the process has ended.
    pub(crate) fn printed(&mut self, text: &str) -> anyhow::Result<usize> {
        let log = std::fs::read(&self.log)?;
        let log = log.get(self.offset..).unwrap_or_default();
        if let Some(status) = self.child.try_wait()? {
            let text = String::from_utf8_lossy(log);
            let end: Vec<&str> = text.lines().rev().take(5).collect();
            bail!("{} ended with {status}: {}", self.name, end.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        Ok(memchr::memmem::find_iter(log, text).count())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a command, and returns its output. It must succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {program}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        bail!("{program}: {}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr));
    }
    Ok(text(&output.stdout))
}
