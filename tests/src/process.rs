//! A process that runs a binary of Atoll, and its log. Dropping the handle ends the process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::eventually;

/// A running process.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

// === impl Process ===

impl Process {
    /// Starts a program. Appends its output to `log`.
    pub fn start(name: &str, program: &Path, args: &[&str], log: PathBuf) -> anyhow::Result<Self> {
        Self::start_with(name, program, args, log, &[])
    }

    /// Like [`Process::start`], with more environment variables.
    pub fn start_with(
        name: &str,
        program: &Path,
        args: &[&str],
        log: PathBuf,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env(
                "RUST_LOG",
                "info,proxy_server=debug,proxy_agent=debug,caller=debug,feeds=debug,host_client=debug,virtual_cluster=debug",
            )
            .env_remove("HTTPS_PROXY")
            .envs(variables.iter().copied())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Like [`memory`].
    pub fn memory(&self) -> anyhow::Result<u64> {
        memory(self.id())
    }

    /// Like [`peak`].
    pub fn peak(&self) -> anyhow::Result<u64> {
        peak(self.id())
    }

    /// The number of its open files and sockets.
    pub fn files(&self) -> anyhow::Result<u64> {
        // proc_pid_fd(5)
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.id()))?.count() as u64)
    }

    /// Its whole output.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its output contains `text`.
    pub fn printed(&mut self, text: &str) -> anyhow::Result<()> {
        eventually(Duration::from_secs(20), || {
            if self.log().contains(text) {
                return Ok(());
            }
            bail!("the output of {} does not contain {text:?}:\n{}", self.name, self.log())
        })
    }

    /// Sends SIGSTOP: the process does nothing until [`resume`](Self::resume).
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal("-STOP")
    }

    /// Sends SIGCONT.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal("-CONT")
    }

    /// Sends SIGTERM, and waits for the end of the process.
    pub fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        self.end("-TERM")
    }

    /// Sends SIGINT, like Ctrl-C, and waits for the end of the process.
    pub fn interrupt(&mut self) -> anyhow::Result<ExitStatus> {
        self.end("-INT")
    }

    fn end(&mut self, signal: &str) -> anyhow::Result<ExitStatus> {
        self.signal(signal)?;
        eventually(Duration::from_secs(40), || self.child.try_wait()?.context("the process is still running"))
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        if !sent.success() {
            bail!("{} had already ended", self.name);
        }
        Ok(())
    }

    /// Sends SIGKILL, and waits for the end of the process.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The memory of a process in bytes (`VmRSS`). Also resets the peak.
pub fn memory(id: u32) -> anyhow::Result<u64> {
    // proc_pid_clear_refs(5)
    std::fs::write(format!("/proc/{id}/clear_refs"), "5")?;
    status(id, "VmRSS:")
}

/// The peak since the last call of [`memory`], in bytes (`VmHWM`).
pub fn peak(id: u32) -> anyhow::Result<u64> {
    status(id, "VmHWM:")
}

fn status(id: u32, key: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(value.with_context(|| format!("process {id} has no {key}"))? * 1024)
}
