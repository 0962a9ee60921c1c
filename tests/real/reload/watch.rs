//! A watch that must not end, and a check that it has not ended.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout};

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, eventually, kubectl};

/// `kubectl get configmaps --watch`, which ends with its first connection.
pub(super) struct Watch {
    kubectl: Kubectl,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    count: u32,
}

// === impl Watch ===

impl Watch {
    /// Watches the namespace `default`.
    pub(super) fn start(kubectl: &Kubectl) -> anyhow::Result<Self> {
        // kubectl prints the list before the watch. Wait for this output.
        let create = || kubectl.ok(&["create", "configmap", "seen-0", "-n", "default"]);
        // A new cluster gets its rights some time after it is provisioned.
        eventually(kubectl::CONDITION_TIMEOUT, create)?;
        let mut child = kubectl.start(&["get", "configmaps", "-n", "default", "--watch", "-o", "name"])?;
        let lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let mut watch = Self { kubectl: kubectl.clone(), child, lines, count: 0 };
        ensure!(watch.next()? == "configmap/seen-0");
        Ok(watch)
    }

    /// Creates an object. It must be the next event: no event is lost or duplicated.
    pub(super) fn goes_on(&mut self) -> anyhow::Result<()> {
        let kubectl = self.kubectl.clone();
        self.goes_on_by(&kubectl)
    }

    /// Like [`Self::goes_on`], if the credentials of the watch are no longer valid.
    pub(super) fn goes_on_by(&mut self, kubectl: &Kubectl) -> anyhow::Result<()> {
        self.count += 1;
        let name = format!("seen-{}", self.count);
        kubectl.ok(&["create", "configmap", &name, "-n", "default"])?;
        let seen = self.next()?;
        ensure!(seen == format!("configmap/{name}"), "{seen} instead of {name}");
        Ok(())
    }

    /// The watch must end by itself.
    pub(super) fn has_ended(mut self) -> anyhow::Result<()> {
        eventually(kubectl::CONDITION_TIMEOUT, || {
            ensure!(self.child.try_wait()?.is_some(), "the watch goes on");
            Ok(())
        })
    }

    /// Ends the watch. It must have continued until now.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let kubectl = self.kubectl.clone();
        self.end_by(&kubectl)
    }

    /// Like [`Self::goes_on`], if the credentials of the watch are no longer valid.
    pub(super) fn end_by(mut self, kubectl: &Kubectl) -> anyhow::Result<()> {
        self.goes_on_by(kubectl)?;
        ensure!(self.child.try_wait()?.is_none(), "the watch has ended");
        kubectl::end(self.child)?;
        Ok(())
    }

    /// The next event of the test. Ignores `kube-root-ca.crt`, which every namespace gets.
    fn next(&mut self) -> anyhow::Result<String> {
        loop {
            let line = self.lines.next().with_context(|| format!("the watch ended after seen-{}", self.count))??;
            if line.starts_with("configmap/seen-") {
                return Ok(line);
            }
        }
    }
}
