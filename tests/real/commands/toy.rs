//! A virtual cluster of `atoll demo` to compare with: what the toy below it does otherwise than a Kubernetes shows.

use atoll_tests::Kubectl;
use atoll_tests::compare::{Script, Side};
use atoll_tests::process::Process;
use tempfile::TempDir;

use super::slice::{founded, furnish};
use crate::demo;

/// A running demonstration.
pub(super) struct Toy {
    kubectl: Kubectl,
    _demo: Process,
    _folder: TempDir,
}

// === impl Toy ===

impl Toy {
    pub(super) fn start(scripts: &[Script]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("atoll-toy-").tempdir()?;
        let dir = folder.path().join("demo");
        let mut demo = demo::start(None, &dir, "demo")?;
        demo::ready(&mut demo)?;
        let of = |cluster: &str| Kubectl::new(dir.join(format!("{cluster}.kubeconfig")));
        furnish(&of("ke-hangzhou"), scripts)?;
        let kubectl = of("ke-beijing");
        founded(&kubectl)?;
        Ok(Self { kubectl, _demo: demo, _folder: folder })
    }

    pub(super) fn side(&self) -> anyhow::Result<Side> {
        Side::new("demo", &self.kubectl)
    }
}
