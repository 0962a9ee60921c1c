//! One of the compared clusters, and kubectl commands for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;

use super::script::words::quote;
use crate::{Kubectl, kubectl, paths};

/// The time limit of a command, in seconds.
const TIMEOUT_SECONDS: &str = "60";

/// The size of the terminal for interactive commands.
const TERMINAL: &str = "stty rows 30 cols 100";

/// A cluster and credentials for it.
#[derive(Debug)]
pub struct Side {
    name: &'static str,
    kubeconfig: PathBuf,
    server: String,
    // For kubectl's discovery cache.
    home: TempDir,
}

// === impl Side ===

impl Side {
    /// The cluster of a kubeconfig. `name` is for reports.
    pub fn new(name: &'static str, kubectl: &Kubectl) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(kubectl.kubeconfig())?;
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server:"));
        Ok(Self {
            name,
            kubeconfig: kubectl.kubeconfig().to_owned(),
            server: server.context("the kubeconfig has no server")?.trim().trim_matches('"').to_owned(),
            home: tempfile::Builder::new().prefix("atoll-side-").tempdir()?,
        })
    }

    /// The name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The URL of the API server in the kubeconfig.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// A kubectl command with a time limit.
    pub(super) fn kubectl(&self, words: &[String], folder: &Path) -> Command {
        let mut command = self.with_timeout(folder);
        command.arg(paths::component("kubectl")).args(words);
        command
    }

    /// A kubectl command on a new terminal of script(1). Both outputs are on standard output.
    pub(super) fn kubectl_on_terminal(&self, words: &[String], folder: &Path) -> Command {
        let kubectl = paths::component("kubectl").display().to_string();
        let words: Vec<_> = std::iter::once(&kubectl).chain(words).map(|word| quote(word)).collect();
        let mut command = self.with_timeout(folder);
        command.args(["script", "-qec", &format!("{TERMINAL}; exec {}", words.join(" ")), "/dev/null"]);
        command
    }

    fn with_timeout(&self, folder: &Path) -> Command {
        let mut command = Command::new("timeout");
        command
            .arg(TIMEOUT_SECONDS)
            .current_dir(folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env("TMPDIR", folder)
            .env("TZ", "UTC")
            .env("TERM", "xterm")
            .env("GOGC", kubectl::GOGC)
            // Without labels, the output would contain the names of temporary files and their times.
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N --label=live --label=merged");
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            command.env_remove(name);
        }
        command
    }
}
