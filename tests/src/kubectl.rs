//! Runs kubectl as a user does.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::paths;

/// The time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit of a command that runs until a test ends it: a watch, for example, must outlast a slow test.
const LONG_TIMEOUT: Duration = Duration::from_secs(300);

/// Go's `GOGC` for kubectl. A suite runs kubectl thousands of times, and each run would collect garbage while it starts. This saves a
/// fifth of its CPU time.
pub const GOGC: &str = "400";

/// kubectl with one kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: &'static str,
    kubeconfig: PathBuf,
    settings: Vec<(&'static str, &'static str)>,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code, or -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

// === impl Kubectl ===

impl Kubectl {
    /// kubectl with this kubeconfig.
    pub fn new(kubeconfig: PathBuf) -> Self {
        Self { program: "kubectl", kubeconfig, settings: Vec::new() }
    }

    /// karmadactl with this kubeconfig. It works like kubectl, with a Karmada control plane and its members.
    pub fn karmadactl(kubeconfig: PathBuf) -> Self {
        Self { program: "karmadactl", kubeconfig, settings: Vec::new() }
    }

    /// Helm with this kubeconfig. It takes arguments and ends like kubectl.
    pub fn helm(kubeconfig: PathBuf) -> Self {
        Self { program: "helm", kubeconfig, settings: Vec::new() }
    }

    /// Sets an environment variable of kubectl.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.settings.push((name, value));
        self
    }

    /// kubectl for the same server with this token, and with a separate kubeconfig in `file`.
    pub fn with_token(&self, token: &str, file: PathBuf) -> anyhow::Result<Self> {
        std::fs::copy(&self.kubeconfig, &file)?;
        let other = Self { kubeconfig: file, ..self.clone() };
        other.ok(&["config", "set-credentials", "token", &format!("--token={token}")])?;
        other.ok(&["config", "set-context", "--current", "--user=token"])?;
        Ok(other)
    }

    /// The kubeconfig.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// Runs a command.
    pub fn run(&self, args: &[&str]) -> anyhow::Result<Output> {
        self.run_with(args, "")
    }

    /// Runs a command with this standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> anyhow::Result<Output> {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().with_context(|| self.cannot_start())?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        let input = input.to_owned();
        // kubectl may end without reading its input. Ignore the error.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        Ok(Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn ok(&self, args: &[&str]) -> anyhow::Result<String> {
        self.ok_with(args, "")
    }

    /// Like [`Kubectl::ok`], with this standard input.
    pub fn ok_with(&self, args: &[&str], input: &str) -> anyhow::Result<String> {
        let output = self.run_with(args, input)?;
        if output.code != 0 {
            bail!("{} {args:?} ended with {}:\n{}{}", self.program, output.code, output.stdout, output.stderr);
        }
        Ok(output.stdout)
    }

    /// Runs a command that must fail. Returns both outputs.
    pub fn fails(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.run(args)?;
        if output.code == 0 {
            bail!("{} {args:?} succeeded:\n{}", self.program, output.stdout);
        }
        Ok(format!("{}{}", output.stdout, output.stderr))
    }

    /// Starts kubectl without waiting for its end, for `-w`, `-f` and port-forward. The time limit applies.
    pub fn start(&self, args: &[&str]) -> anyhow::Result<Child> {
        self.start_for(LONG_TIMEOUT, args)
    }

    /// Like [`start`](Self::start), with another time limit.
    pub fn start_for(&self, limit: Duration, args: &[&str]) -> anyhow::Result<Child> {
        self.command_for(limit, args).stdin(Stdio::null()).spawn().with_context(|| self.cannot_start())
    }

    fn cannot_start(&self) -> String {
        format!("cannot start {}", self.program)
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_for(TIMEOUT, args)
    }

    fn command_for(&self, limit: Duration, args: &[&str]) -> Command {
        // kubectl has timeouts, but not for watches, so timeout(1) ends it.
        let mut command = Command::new("timeout");
        command
            .arg(limit.as_secs().to_string())
            .arg(paths::component(self.program))
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubeconfig.parent().unwrap_or(std::path::Path::new("/")))
            .env("GOGC", GOGC)
            .envs(self.settings.iter().copied())
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Runs a program of `tests/conformance`, which prints a line for each of at least `checks` checks. Returns its output. Each check has a
/// time limit, and timeout(1) also limits the whole program.
pub fn conformance(program: &str, kubectl: &Kubectl, checks: usize) -> anyhow::Result<String> {
    let output = Command::new("timeout")
        .arg("300")
        .arg(paths::component(program))
        .arg("--kubeconfig")
        .arg(kubectl.kubeconfig())
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .output()?;
    let (ran, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_complete = ran.lines().count() >= checks && ran.lines().all(|line| line.starts_with("ok "));
    ensure!(output.status.success() && is_complete, "{ran}{problems}");
    Ok(ran.into_owned())
}

/// Ends a command that [`Kubectl::start`] started. Returns its standard error. SIGKILL would end only timeout(1), and
/// kubectl would continue.
pub fn end(mut child: Child) -> anyhow::Result<String> {
    let _sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    drop(child.stdout.take());
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stderr).into_owned())
}

/// The time limit for a condition that is normally true at once.
pub const CONDITION_TIMEOUT: Duration = Duration::from_secs(20);
