//! A virtual cluster of `atoll demo`, whose host is dev-apiserver.

use atoll_tests::Kubectl;
use atoll_tests::compare::{Script, Side};
use atoll_tests::process::Process;
use tempfile::TempDir;

use super::virtual_cluster::{create_namespaces, wait_for_namespaces};
use crate::demo;

/// A running demo.
pub(super) struct DemoCluster {
    kubectl: Kubectl,
    _demo: Process,
    _folder: TempDir,
}

// === impl DemoCluster ===

impl DemoCluster {
    pub(super) fn start(scripts: &[Script]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("atoll-demo-").tempdir()?;
        let dir = folder.path().join("demo");
        let mut demo = demo::start(None, &dir, "demo")?;
        demo::ready(&mut demo)?;
        let of = |cluster: &str| Kubectl::new(dir.join(format!("{cluster}.kubeconfig")));
        create_namespaces(&of("ke-hangzhou"), scripts)?;
        let kubectl = of("ke-beijing");
        wait_for_namespaces(&kubectl)?;
        Ok(Self { kubectl, _demo: demo, _folder: folder })
    }

    pub(super) fn side(&self) -> anyhow::Result<Side> {
        Side::new("demo", &self.kubectl)
    }
}
