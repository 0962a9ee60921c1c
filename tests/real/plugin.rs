//! `kubectl atoll`: the plugin of kubectl.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use atoll_tests::paths;
use libtest_mimic::Trial;

use crate::trial::trial;

pub(crate) fn trial_of_kubectl() -> Trial {
    trial("plugin::kubectl_runs_it", kubectl_runs_it)
}

/// kubectl with the plugins in this directory.
pub(crate) fn kubectl(plugins: &Path) -> anyhow::Result<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(plugins.to_owned()).chain(std::env::split_paths(&path)))?;
    let mut kubectl = Command::new(paths::component("kubectl"));
    kubectl.env("PATH", path).stdin(Stdio::null());
    Ok(kubectl)
}

fn kubectl_runs_it() -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("atoll-plugin-").tempdir()?;
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin)?;
    symlink(paths::binary("atoll"), bin.join("kubectl-atoll"))?;
    let run = |args: &[&str]| -> anyhow::Result<(Option<i32>, String, String)> {
        let output = kubectl(&bin)?.args(args).current_dir(dir.path()).output().context("cannot start kubectl")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
    };

    let (_, plugins, _) = run(&["plugin", "list", "--name-only"])?;
    ensure!(plugins.lines().any(|name| name == "kubectl-atoll"), "{plugins}");
    let (code, help, _) = run(&["atoll", "--help"])?;
    ensure!(code == Some(0) && help.contains("Usage: kubectl atoll <COMMAND>"), "{help}");
    ensure!(help.contains("\n  kubectl atoll demo\n") && !help.contains("\n  atoll demo"), "{help}");

    let (code, made, problem) = run(&["atoll", "certs", "init", "certs"])?;
    ensure!(code == Some(0) && made.contains("serving-ca.crt"), "{made}{problem}");
    // Errors and exit codes are those of atoll, with the command that the user can repeat.
    let (code, _, problem) = run(&["atoll", "certs", "client", "jane", "--cluster", "branch-7", "--dir", "certs"])?;
    ensure!(
        code == Some(1) && problem.starts_with("kubectl atoll: run `kubectl atoll certs cluster branch-7`"),
        "{problem}"
    );
    let port = paths::free_port();
    let (code, _, problem) = run(&["atoll", "status", "--admin", &format!("http://127.0.0.1:{port}")])?;
    ensure!(code == Some(2) && problem.starts_with("kubectl atoll: no response"), "{problem}");
    Ok(())
}
