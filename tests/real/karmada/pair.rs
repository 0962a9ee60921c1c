//! Both virtual clusters as members of one control plane.

use anyhow::ensure;
use atoll_tests::{Karmada, Kubectl, Route, VirtualSite, eventually};

use super::{BEIJING, HANGZHOU, SETTLED};

/// Both members of the control plane, and their host.
pub(super) struct Pair {
    pub(super) karmada: Karmada,
    pub(super) host: Kubectl,
    pub(super) members: [(&'static str, Kubectl); 2],
}

// === impl Pair ===

impl Pair {
    /// Joins both, with different routes.
    pub(super) fn join(site: &VirtualSite) -> anyhow::Result<Self> {
        let karmada = Karmada::beside(site.host());
        let members = [
            (BEIJING, site.administrator(BEIJING, Route::Proxy)?),
            (HANGZHOU, site.administrator(HANGZHOU, Route::Path)?),
        ];
        for (name, kubectl) in &members {
            karmada.join(name, kubectl.kubeconfig())?;
        }
        let clusters = [karmada.ready(BEIJING)?, karmada.ready(HANGZHOU)?];
        let ids = clusters.each_ref().map(|cluster| &cluster["spec"]["id"]);
        ensure!(ids[0] != ids[1], "both have the same ID: {ids:?}");
        Ok(Self { karmada, host: site.host().kubectl(), members })
    }

    pub(super) fn leave(&self, number: usize) -> anyhow::Result<()> {
        let (name, kubectl) = &self.members[number];
        self.karmada.unjoin(name, kubectl.kubeconfig(), name)
    }

    /// Waits until the host has deleted all objects that Karmada created.
    pub(super) fn nothing_is_left_of(&self, words: &[&str]) -> anyhow::Result<()> {
        eventually(SETTLED, || {
            let all = ["get", "namespaces,clusterroles,clusterrolebindings", "-o=name"];
            let all = self.host.ok(&all)?;
            let shown = "-o=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
            let bindings = self.host.ok(&["get", "rolebindings", "-A", shown])?;
            let left: Vec<&str> = all
                .lines()
                .chain(bindings.lines())
                .filter(|name| words.iter().any(|word| name.contains(word)))
                .collect();
            ensure!(left.is_empty(), "left on the host: {left:?}");
            Ok(())
        })
    }
}
