//! Informers of client-go, and a writer, in one virtual cluster.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, paths};

/// What the informers watch.
const RESOURCES: &str = "configmaps.v1.,secrets.v1.,pods.v1.,serviceaccounts.v1.,namespaces.v1.,\
                         rolebindings.v1.rbac.authorization.k8s.io";

/// The time between two writes of one cluster.
const PAUSE: &str = "400ms";

/// The informers of one virtual cluster.
pub(super) struct Watcher {
    child: Child,
    log: PathBuf,
}

// === impl Watcher ===

impl Watcher {
    pub(super) fn start(kubectl: &Kubectl, log: &Path, duration: Duration) -> anyhow::Result<Self> {
        let output = File::create(log)?;
        let child = Command::new(paths::component("atoll-informer"))
            .arg("--kubeconfig")
            .arg(kubectl.kubeconfig())
            .args(["--resources", RESOURCES, "--pause", PAUSE, "--duration", &format!("{}s", duration.as_secs())])
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start informers")?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Waits for the end. The caches must equal new lists. Returns the numbers of objects, events and writes.
    pub(super) fn missed_nothing(mut self) -> anyhow::Result<String> {
        let status = self.child.wait()?;
        let text = std::fs::read_to_string(&self.log)?;
        ensure!(status.success(), "{text}");
        Ok(text.lines().last().context("no output")?.to_owned())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
