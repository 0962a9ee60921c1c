//! Client libraries: client-go, controller-runtime, kube-rs, the Python client, and the cache of Argo CD.

use std::process::Command;

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite, paths};

use super::{BEIJING, HANGZHOU};

/// The programs of `tests/conformance`, and their minimum numbers of checks.
const PROGRAMS: [(&str, usize); 4] =
    [("atoll-clients", 25), ("atoll-kube-rs", 13), ("atoll-python", 9), ("atoll-gitops", 4)];

pub(super) fn by_proxy(site: &VirtualSite) -> anyhow::Result<()> {
    all(site, BEIJING, Route::Proxy)
}

pub(super) fn by_path(site: &VirtualSite) -> anyhow::Result<()> {
    all(site, HANGZHOU, Route::Path)
}

fn all(site: &VirtualSite, cluster: &str, route: Route) -> anyhow::Result<()> {
    for (program, checks) in PROGRAMS {
        run(site, cluster, route, program, checks).with_context(|| format!("{program} on {cluster}, {route:?}"))?;
    }
    Ok(())
}

/// Prints the list of checks, which is the source of the table of compatible clients.
#[expect(clippy::print_stdout, reason = "the list is for whoever reads the log of the suite")]
fn run(site: &VirtualSite, cluster: &str, route: Route, program: &str, checks: usize) -> anyhow::Result<()> {
    let kubectl = site.administrator(cluster, route)?;
    // Each check has a time limit. timeout(1) also limits the whole program.
    let output = Command::new("timeout")
        .arg("300")
        .arg(paths::component(program))
        .arg("--kubeconfig")
        .arg(kubectl.kubeconfig())
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .output()?;
    let (ran, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{program} on {cluster}, {route:?}:\n{ran}");
    ensure!(output.status.success(), "{ran}{problems}");
    ensure!(ran.lines().count() >= checks && ran.lines().all(|line| line.starts_with("ok ")), "{ran}");
    Ok(())
}
