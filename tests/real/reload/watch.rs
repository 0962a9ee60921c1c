//! A watch that must not break, and a way to see that it did not.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout};

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, eventually, kubectl};

/// `kubectl get configmaps --watch`, which ends at the first break.
pub(super) struct Watch {
    kubectl: Kubectl,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    count: u32,
}

// === impl Watch ===

impl Watch {
    /// Begins to watch the namespace `default`.
    pub(super) fn start(kubectl: &Kubectl) -> anyhow::Result<Self> {
        // What the list before the watch shows says that it has begun.
        let create = || kubectl.ok(&["create", "configmap", "seen-0", "-n", "default"]);
        // A cluster that was just provisioned has its rights a moment later.
        eventually(kubectl::SOON, create)?;
        let mut child = kubectl.start(&["get", "configmaps", "-n", "default", "--watch", "-o", "name"])?;
        let lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let mut watch = Self { kubectl: kubectl.clone(), child, lines, count: 0 };
        ensure!(watch.next()? == "configmap/seen-0");
        Ok(watch)
    }

    /// Something happens, and is the next thing that is told of: nothing was lost, and nothing comes twice.
    pub(super) fn goes_on(&mut self) -> anyhow::Result<()> {
        let kubectl = self.kubectl.clone();
        self.goes_on_by(&kubectl)
    }

    /// The same, where the credentials that the watch began with are out of date.
    pub(super) fn goes_on_by(&mut self, kubectl: &Kubectl) -> anyhow::Result<()> {
        self.count += 1;
        let name = format!("seen-{}", self.count);
        kubectl.ok(&["create", "configmap", &name, "-n", "default"])?;
        let seen = self.next()?;
        ensure!(seen == format!("configmap/{name}"), "{seen} instead of {name}");
        Ok(())
    }

    /// Ends it; it must have gone on until then.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let kubectl = self.kubectl.clone();
        self.end_by(&kubectl)
    }

    /// The same, where the credentials that the watch began with are out of date.
    pub(super) fn end_by(mut self, kubectl: &Kubectl) -> anyhow::Result<()> {
        self.goes_on_by(kubectl)?;
        ensure!(self.child.try_wait()?.is_none(), "the watch ended by itself");
        kubectl::end(self.child)?;
        Ok(())
    }

    /// The next of ours: every namespace gets the host's `kube-root-ca.crt` some time.
    fn next(&mut self) -> anyhow::Result<String> {
        loop {
            let line = self.lines.next().with_context(|| format!("the watch ended after seen-{}", self.count))??;
            if line.starts_with("configmap/seen-") {
                return Ok(line);
            }
        }
    }
}
