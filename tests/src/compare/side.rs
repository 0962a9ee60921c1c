//! One of the two clusters, and how kubectl is run on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;

use super::script::words::quote;
use crate::{Kubectl, paths};

/// No command needs longer, in seconds; a hang must not eat the suite's time.
const LIMIT: &str = "60";

/// The terminal that interactive commands get.
const TERMINAL: &str = "stty rows 30 cols 100";

/// A cluster with credentials for it.
#[derive(Debug)]
pub struct Side {
    name: &'static str,
    kubeconfig: PathBuf,
    server: String,
    // Holds kubectl's discovery cache, so that not every command asks for it again.
    home: TempDir,
}

// === impl Side ===

impl Side {
    /// The cluster of a kubeconfig; `name` is for reports.
    pub fn new(name: &'static str, kubectl: &Kubectl) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(kubectl.kubeconfig())?;
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server:"));
        Ok(Self {
            name,
            kubeconfig: kubectl.kubeconfig().to_owned(),
            server: server.context("the kubeconfig names no server")?.trim().trim_matches('"').to_owned(),
            home: tempfile::Builder::new().prefix("atoll-side-").tempdir()?,
        })
    }

    /// Its name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The URL of its API server, as the kubeconfig has it.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// kubectl, bounded in time.
    pub(super) fn kubectl(&self, words: &[String], folder: &Path) -> Command {
        let mut command = self.bounded(folder);
        command.arg(paths::component("kubectl")).args(words);
        command
    }

    /// kubectl on a terminal of its own, made by script(1); what it prints on both outputs is on standard output.
    pub(super) fn kubectl_on_terminal(&self, words: &[String], folder: &Path) -> Command {
        let kubectl = paths::component("kubectl").display().to_string();
        let words: Vec<_> = std::iter::once(&kubectl).chain(words).map(|word| quote(word)).collect();
        let mut command = self.bounded(folder);
        command.args(["script", "-qec", &format!("{TERMINAL}; exec {}", words.join(" ")), "/dev/null"]);
        command
    }

    fn bounded(&self, folder: &Path) -> Command {
        let mut command = Command::new("timeout");
        command
            .arg(LIMIT)
            .current_dir(folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env("TMPDIR", folder)
            .env("TZ", "UTC")
            .env("TERM", "xterm")
            // Without labels the names of temporary files and their times would be part of the output.
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N --label=live --label=merged");
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            command.env_remove(name);
        }
        command
    }
}
