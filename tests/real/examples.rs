//! The commands of the pages in `examples/`.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use atoll_tests::{HostCluster, paths};
use libtest_mimic::Trial;

use crate::trial::trial;

/// These pages and those in [`pages`](crate::pages) use fixed ports, so only one runs at a time.
pub(crate) static PORTS: Mutex<()> = Mutex::new(());

/// The time limit of a page, in seconds.
const LIMIT: &str = "180";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("examples::two_sites", two_sites), trial("examples::physical_cluster", physical_cluster)]
}

fn two_sites() -> anyhow::Result<()> {
    let printed = follow("two-sites")?;
    for expected in [
        "node/beijing-1",
        "namespace/edge created",
        "deployment \"nginx\" successfully rolled out",
        "edge-ke-beijing",
        "edge-ke-hangzhou",
    ] {
        ensure!(printed.contains(expected), "{expected:?} is not printed:\n{printed}");
    }
    Ok(())
}

fn physical_cluster() -> anyhow::Result<()> {
    let printed = follow("physical-cluster")?;
    for expected in ["proxy-url: http://127.0.0.1:8090", "beijing-1", "hangzhou-1"] {
        ensure!(printed.contains(expected), "{expected:?} is not printed:\n{printed}");
    }
    Ok(())
}

/// Runs the text between "```sh" and "```" in one shell, in the root of the workspace, with its own home directory.
fn follow(example: &str) -> anyhow::Result<String> {
    let page = paths::workspace().join("examples").join(example).join("README.md");
    let page = std::fs::read_to_string(&page).with_context(|| format!("no {}", page.display()))?;
    let commands: Vec<&str> =
        page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block)).collect();
    ensure!(commands.len() > 3, "the page has {} blocks of commands", commands.len());

    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let host = HostCluster::up(1)?;
    let home = tempfile::Builder::new().prefix("atoll-example-").tempdir()?;
    let folders = [paths::binary("atoll"), paths::component("kubectl")].map(|program| program.parent().map(Into::into));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = folders.into_iter().flatten().chain(std::env::split_paths(&path));
    let log = home.path().join("log");
    let output = std::fs::File::create(&log)?;
    // timeout(1) ends the process group of the shell, with all processes that a failed page has started.
    let status = Command::new("timeout")
        .args([
            LIMIT,
            "bash",
            "-euo",
            "pipefail",
            "-c",
            &format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}", commands.join("\n")),
        ])
        .current_dir(paths::workspace())
        .env("PATH", std::env::join_paths(path)?)
        .env("HOME", home.path())
        .env("KUBECONFIG", host.kubectl().kubeconfig())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    let printed = std::fs::read_to_string(&log)?;
    ensure!(status.success(), "the page {example} ended with {status}:\n{printed}");
    Ok(printed)
}
