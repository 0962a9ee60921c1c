//! The chart from which a release is upgraded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::paths;

use super::{AGENT, SERVER, chart, text};

/// The chart in the repository.
const PATH: &str = "configs/helm/atoll";

/// Writes the previous chart to this folder: that of the newest commit in which it differs from the chart of today. If there
/// is no such commit, it is the chart of today with an earlier version.
pub(super) fn write(folder: &Path) -> anyhow::Result<PathBuf> {
    let Some(commit) = commits().next() else { return earlier(folder) };
    let archive = Command::new("git").arg("-C").arg(paths::workspace()).args(["archive", &commit, PATH]).output()?;
    ensure!(archive.status.success(), "git archive: {}", String::from_utf8_lossy(&archive.stderr));
    let file = folder.join("chart.tar");
    fs::write(&file, &archive.stdout)?;
    let status = Command::new("tar").args(["xf", text(&file)?, "-C", text(folder)?]).status()?;
    ensure!(status.success(), "tar: {status}");
    Ok(folder.join(PATH))
}

/// The commits with another chart that has the values of the tests, newest first. A copy without history has none.
fn commits() -> impl Iterator<Item = String> {
    let git = |args: &[&str]| Command::new("git").arg("-C").arg(paths::workspace()).args(args).output();
    let is = move |args: &[&str], code: i32| git(args).is_ok_and(|output| output.status.code() == Some(code));
    let log = git(&["log", "--format=%H", "-n", "20", "--", PATH]).map(|output| output.stdout).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    let hashes: Vec<String> = log.lines().map(str::to_owned).collect();
    hashes.into_iter().filter(move |commit| {
        let has = |set: &str| is(&["cat-file", "-e", &format!("{commit}:{PATH}/ci/{set}-values.yaml")], 0);
        has(AGENT) && has(SERVER) && is(&["diff", "--quiet", commit, "--", PATH], 1)
    })
}

fn earlier(folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder.join("earlier");
    let chart = chart();
    let status = Command::new("cp").args(["-r", text(&chart)?, text(&copy)?]).status()?;
    ensure!(status.success(), "cp: {status}");
    let file = copy.join("Chart.yaml");
    let yaml = fs::read_to_string(&file)?;
    let (now, then) = (format!("ersion: {}", env!("CARGO_PKG_VERSION")), "ersion: 0.0.1");
    ensure!(yaml.matches(&now).count() == 2, "no versions in Chart.yaml:\n{yaml}");
    fs::write(&file, yaml.replace(&now, then)).context("cannot write Chart.yaml")?;
    Ok(copy)
}
