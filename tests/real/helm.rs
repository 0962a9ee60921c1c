//! The Helm chart `configs/helm/atoll`, installed on a real host cluster as in its README.
//!
//! Reading order: [`values`] (what Helm refuses), [`objects`] (what it renders, compared to `configs/kubernetes`),
//! [`release`] (from the installation until everything is deleted), [`previous`] (the chart to upgrade from), [`agent`] (a
//! process that uses what the release provides), [`left`] (what stays), [`karmada`] (the rights in Karmada).

mod agent;
mod karmada;
mod left;
mod objects;
mod previous;
mod release;
mod values;

use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_tests::{HostCluster, Kubectl, paths};
use libtest_mimic::Trial;

use crate::manifests::Manifests;
use crate::trial::trial;

/// The namespace of the releases. The documentation uses this name.
const NAMESPACE: &str = "atoll-system";
/// The values of `ci/` that equal the configurations of `configs/kubernetes`.
const AGENT: &str = "agent";
const SERVER: &str = "server";

/// kubectl and Helm as an administrator of the host.
struct Admin {
    kubectl: Kubectl,
    helm: Kubectl,
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("helm::wrong_values_are_refused", values::wrong_values_are_refused),
        trial("helm::a_release_leaves_only_what_the_readme_says", release::leaves_only_what_the_readme_says),
    ]
}

fn chart() -> PathBuf {
    paths::workspace().join("configs/helm/atoll")
}

/// A file of `ci/` in this chart.
fn values_of(chart: &Path, set: &str) -> anyhow::Result<String> {
    text(&chart.join("ci").join(format!("{set}-values.yaml"))).map(str::to_owned)
}

/// The names of all files of `ci/`, without `-values.yaml`.
fn sets() -> anyhow::Result<Vec<String>> {
    let mut sets = Vec::new();
    for file in std::fs::read_dir(chart().join("ci"))? {
        let name = file?.file_name().into_string().ok().context("files of ci/ have UTF-8 names")?;
        sets.push(name.strip_suffix("-values.yaml").with_context(|| format!("ci/{name} has another name"))?.to_owned());
    }
    sets.sort_unstable();
    Ok(sets)
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("paths of these tests are UTF-8")
}

// === impl Admin ===

impl Admin {
    fn of(host: &HostCluster) -> Self {
        let kubectl = host.kubectl();
        let helm = Kubectl::helm(kubectl.kubeconfig().to_owned());
        Self { kubectl, helm }
    }

    /// Runs Helm in the namespace of the releases.
    fn helm(&self, args: &[&str]) -> anyhow::Result<String> {
        self.helm.ok(&[&["-n", NAMESPACE][..], args].concat())
    }

    /// Runs kubectl in this namespace.
    fn kubectl(&self, args: &[&str]) -> anyhow::Result<String> {
        self.kubectl.ok(&[&["-n", NAMESPACE][..], args].concat())
    }

    /// Installs or upgrades a release with the values of `ci/` and more arguments, and checks its objects.
    fn change(&self, verb: &[&str], release: &str, chart: &Path, set: &str, more: &[&str]) -> anyhow::Result<()> {
        let values = values_of(chart, set)?;
        self.helm(&[verb, &[release, text(chart)?, "-f", &values], more].concat())?;
        self.is_stored(release)
    }

    /// The API server has the objects of the release.
    fn is_stored(&self, release: &str) -> anyhow::Result<()> {
        let manifest = self.helm(&["get", "manifest", release])?;
        // The command ends with 1 if there is a difference.
        self.kubectl.ok_with(&["diff", "-f", "-"], &manifest).map(drop).context("the release differs from its objects")
    }

    /// Waits until all pods are ready. Returns the number of different templates that they have had.
    fn revision(&self, half: &Manifests) -> anyhow::Result<u32> {
        self.kubectl(&["rollout", "status", "deployment", half.program, "--timeout=45s"])?;
        let path = r"jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}";
        Ok(self.kubectl(&["get", "deployment", half.program, "-o", path])?.parse()?)
    }

    /// The configuration of the agent in the release.
    fn agent_config(&self) -> anyhow::Result<String> {
        self.kubectl(&["get", "configmap", "proxy-agent", "-o", r#"go-template={{index .data "proxy-agent.yaml"}}"#])
    }

    /// A kubeconfig with a new token of the agent's service account in the release.
    fn agent_kubeconfig(&self, host: &HostCluster) -> anyhow::Result<PathBuf> {
        let token = self.kubectl(&["create", "token", "proxy-agent"])?;
        Ok(host.with_token(token.trim())?.kubeconfig().to_owned())
    }
}
