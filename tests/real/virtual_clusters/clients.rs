//! The clients that programs are made of: client-go in every form, and controller-runtime.

use std::process::Command;

use anyhow::ensure;
use atoll_tests::{VirtualSite, Way, paths};

use super::{BEIJING, HANGZHOU};

pub(super) fn by_proxy(site: &VirtualSite) -> anyhow::Result<()> {
    all(site, BEIJING, Way::Proxy)
}

pub(super) fn by_path(site: &VirtualSite) -> anyhow::Result<()> {
    all(site, HANGZHOU, Way::Path)
}

/// Prints the list of what ran, which is what a table of compatible clients rests on.
#[expect(clippy::print_stdout, reason = "the list is for whoever reads the log of the suite")]
fn all(site: &VirtualSite, cluster: &str, way: Way) -> anyhow::Result<()> {
    let kubectl = site.administrator(cluster, way)?;
    // Each check is bounded, and so all are; timeout(1) ends what hangs all the same.
    let output = Command::new("timeout")
        .arg("300")
        .arg(paths::component("atoll-clients"))
        .arg("--kubeconfig")
        .arg(kubectl.kubeconfig())
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .output()?;
    let (ran, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("clients of {cluster}, {way:?}:\n{ran}");
    ensure!(output.status.success(), "{ran}{problems}");
    ensure!(ran.lines().count() >= 25 && ran.lines().all(|line| line.starts_with("ok ")), "{ran}");
    Ok(())
}
