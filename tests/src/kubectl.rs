//! kubectl, as a user runs it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::paths;

/// No kubectl call of a suite needs longer, in seconds; a hang must not eat the suite's time.
const LIMIT: &str = "60";

/// kubectl with one kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: &'static str,
    kubeconfig: PathBuf,
    settings: Vec<(&'static str, &'static str)>,
}

/// What a call printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

// === impl Kubectl ===

impl Kubectl {
    /// With this kubeconfig.
    pub fn new(kubeconfig: PathBuf) -> Self {
        Self { program: "kubectl", kubeconfig, settings: Vec::new() }
    }

    /// karmadactl, which is kubectl for a Karmada control plane and its members, with this kubeconfig.
    pub fn karmadactl(kubeconfig: PathBuf) -> Self {
        Self { program: "karmadactl", kubeconfig, settings: Vec::new() }
    }

    /// With a variable of the environment by which kubectl is set.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.settings.push((name, value));
        self
    }

    /// kubectl for the same server with this token, with a separate kubeconfig in `file`.
    pub fn holding(&self, token: &str, file: PathBuf) -> anyhow::Result<Self> {
        std::fs::copy(&self.kubeconfig, &file)?;
        let holder = Self { kubeconfig: file, ..self.clone() };
        holder.ok(&["config", "set-credentials", "holder", &format!("--token={token}")])?;
        holder.ok(&["config", "set-context", "--current", "--user=holder"])?;
        Ok(holder)
    }

    /// The kubeconfig.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// Runs to its end.
    pub fn run(&self, args: &[&str]) -> anyhow::Result<Output> {
        self.run_with(args, "")
    }

    /// Runs to its end, with a standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> anyhow::Result<Output> {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().with_context(|| self.cannot_start())?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        let input = input.to_owned();
        // kubectl may end without reading its input; that is no failure of ours.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        Ok(Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs, and must succeed; the standard output is the result.
    pub fn ok(&self, args: &[&str]) -> anyhow::Result<String> {
        self.ok_with(args, "")
    }

    /// Like [`Kubectl::ok`], with a standard input.
    pub fn ok_with(&self, args: &[&str], input: &str) -> anyhow::Result<String> {
        let output = self.run_with(args, input)?;
        if output.code != 0 {
            bail!("{} {args:?} ended with {}:\n{}{}", self.program, output.code, output.stdout, output.stderr);
        }
        Ok(output.stdout)
    }

    /// Runs, and must fail; both outputs together are the result.
    pub fn fails(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.run(args)?;
        if output.code == 0 {
            bail!("{} {args:?} succeeded:\n{}", self.program, output.stdout);
        }
        Ok(format!("{}{}", output.stdout, output.stderr))
    }

    /// Starts kubectl and returns, for `-w`, `-f` and port-forward. Bounded in time like every call.
    pub fn start(&self, args: &[&str]) -> anyhow::Result<Child> {
        self.command(args).stdin(Stdio::null()).spawn().with_context(|| self.cannot_start())
    }

    fn cannot_start(&self) -> String {
        format!("cannot start {}", self.program)
    }

    fn command(&self, args: &[&str]) -> Command {
        // timeout(1) ends what hangs; kubectl's own time-outs do not cover watches.
        let mut command = Command::new("timeout");
        command
            .arg(LIMIT)
            .arg(paths::component(self.program))
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubeconfig.parent().unwrap_or(std::path::Path::new("/")))
            .envs(self.settings.iter().copied())
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Ends what [`Kubectl::start`] began; what it wrote to standard error is the result. SIGKILL would end timeout(1) only,
/// and kubectl would go on.
pub fn end(mut child: Child) -> anyhow::Result<String> {
    let _gone = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    drop(child.stdout.take());
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stderr).into_owned())
}

/// How long things may take that a healthy set-up does at once.
pub const SOON: Duration = Duration::from_secs(20);
