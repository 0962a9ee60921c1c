//! Client libraries: client-go, controller-runtime, kube-rs, the Python client, and the cache of Argo CD.

use anyhow::Context;
use atoll_tests::{Route, VirtualSite, kubectl};

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
    let ran = kubectl::conformance(program, &site.administrator(cluster, route)?, checks)?;
    println!("{program} on {cluster}, {route:?}:\n{ran}");
    Ok(())
}
