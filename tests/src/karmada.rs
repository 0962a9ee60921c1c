//! A Karmada control plane, as its administrator uses it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{HostCluster, Kubectl, eventually};

/// How long Karmada may take to call a new member ready: it looks every ten seconds, and after three failures in a row
/// every thirty; on a busy machine, some of the first looks fail.
const READY: Duration = Duration::from_secs(150);

/// Where Karmada keeps its service accounts in a member.
const NAMESPACE: &str = "karmada-cluster";

/// The control plane of [`HostCluster::up_with_karmada`].
#[derive(Clone, Debug)]
pub struct Karmada {
    kubectl: Kubectl,
    karmadactl: Kubectl,
}

// === impl Karmada ===

impl Karmada {
    /// The one that was started beside this host.
    pub fn beside(host: &HostCluster) -> Self {
        let kubeconfig = host.dir().join("karmada.kubeconfig");
        Self { kubectl: Kubectl::new(kubeconfig.clone()), karmadactl: Kubectl::karmadactl(kubeconfig) }
    }

    /// kubectl for the control plane's own API.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// karmadactl, which also looks into members.
    pub fn karmadactl(&self) -> &Kubectl {
        &self.karmadactl
    }

    /// `karmadactl join` in push mode, with the current context of `kubeconfig`. A member that has just left is joined
    /// when its namespace is gone: `join` takes one that is being deleted for a good one.
    pub fn join(&self, member: &str, kubeconfig: &Path) -> anyhow::Result<()> {
        let there = Kubectl::new(kubeconfig.to_path_buf());
        eventually(READY, || {
            let end =
                ["get", "namespace", NAMESPACE, "--ignore-not-found", "-o=jsonpath={.metadata.deletionTimestamp}"];
            let end = there.ok(&end)?;
            ensure!(end.is_empty(), "{NAMESPACE} of {member} is being deleted since {end}");
            Ok(())
        })?;
        let kubeconfig = kubeconfig.to_str().context("kubeconfigs have plain names")?;
        self.karmadactl.ok(&["join", member, "--cluster-kubeconfig", kubeconfig])?;
        Ok(())
    }

    /// `karmadactl unjoin`, which also cleans up in the member.
    pub fn unjoin(&self, member: &str, kubeconfig: &Path, context: &str) -> anyhow::Result<()> {
        let kubeconfig = kubeconfig.to_str().context("kubeconfigs have plain names")?;
        let there = ["--cluster-kubeconfig", kubeconfig, "--cluster-context", context];
        self.karmadactl.ok(&[&["unjoin", member], there.as_slice()].concat())?;
        Ok(())
    }

    /// The member once it is ready, with everything that it serves known to Karmada.
    pub fn ready(&self, member: &str) -> anyhow::Result<Value> {
        eventually(READY, || {
            let cluster: Value = serde_json::from_str(&self.kubectl.ok(&["get", "cluster", member, "-o", "json"])?)?;
            let conditions = cluster.pointer("/status/conditions").and_then(Value::as_array);
            for wanted in ["Ready", "CompleteAPIEnablements"] {
                let met = |condition: &Value| condition["type"] == wanted && condition["status"] == "True";
                ensure!(conditions.is_some_and(|all| all.iter().any(met)), "{member} is not {wanted}: {conditions:?}");
            }
            // Counted by informers, which start after the first look.
            ensure!(cluster.pointer("/status/nodeSummary/totalNum").is_some(), "{member} has no nodes yet");
            Ok(cluster)
        })
    }
}
