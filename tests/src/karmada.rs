//! A Karmada control plane, with the tools of its administrator.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{HostCluster, Kubectl, eventually};

/// The time limit until a new member is ready. Karmada checks it every ten seconds, and after three consecutive
/// failures every thirty. On a busy machine, some of the first checks fail.
const READY_TIMEOUT: Duration = Duration::from_secs(150);

/// The namespace of Karmada's service accounts in a member.
const NAMESPACE: &str = "karmada-cluster";

/// The control plane of [`HostCluster::up_with_karmada`].
#[derive(Clone, Debug)]
pub struct Karmada {
    kubectl: Kubectl,
    karmadactl: Kubectl,
}

// === impl Karmada ===

impl Karmada {
    /// The control plane that was started with this host.
    pub fn beside(host: &HostCluster) -> Self {
        let kubeconfig = host.dir().join("karmada.kubeconfig");
        Self { kubectl: Kubectl::new(kubeconfig.clone()), karmadactl: Kubectl::karmadactl(kubeconfig) }
    }

    /// kubectl for the control plane.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// karmadactl, which also reads from members.
    pub fn karmadactl(&self) -> &Kubectl {
        &self.karmadactl
    }

    /// `karmadactl join` in push mode, with the current context of `kubeconfig`. It first waits until a previous
    /// namespace of Karmada in the member is deleted, because `join` accepts a namespace that is being deleted.
    pub fn join(&self, member: &str, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubectl = Kubectl::new(kubeconfig.to_path_buf());
        eventually(READY_TIMEOUT, || {
            let end =
                ["get", "namespace", NAMESPACE, "--ignore-not-found", "-o=jsonpath={.metadata.deletionTimestamp}"];
            let end = kubectl.ok(&end)?;
            ensure!(end.is_empty(), "{NAMESPACE} of {member} is being deleted since {end}");
            Ok(())
        })?;
        let kubeconfig = kubeconfig.to_str().context("kubeconfigs have UTF-8 names")?;
        self.karmadactl.ok(&["join", member, "--cluster-kubeconfig", kubeconfig])?;
        Ok(())
    }

    /// `karmadactl unjoin`, which also deletes Karmada's objects in the member.
    pub fn unjoin(&self, member: &str, kubeconfig: &Path, context: &str) -> anyhow::Result<()> {
        let kubeconfig = kubeconfig.to_str().context("kubeconfigs have UTF-8 names")?;
        let flags = ["--cluster-kubeconfig", kubeconfig, "--cluster-context", context];
        self.karmadactl.ok(&[&["unjoin", member], flags.as_slice()].concat())?;
        Ok(())
    }

    /// Waits until the member is ready, and until Karmada knows all its resources. Returns the Cluster.
    pub fn ready(&self, member: &str) -> anyhow::Result<Value> {
        eventually(READY_TIMEOUT, || {
            let cluster: Value = serde_json::from_str(&self.kubectl.ok(&["get", "cluster", member, "-o", "json"])?)?;
            let conditions = cluster.pointer("/status/conditions").and_then(Value::as_array);
            for wanted in ["Ready", "CompleteAPIEnablements"] {
                let met = |condition: &Value| condition["type"] == wanted && condition["status"] == "True";
                ensure!(conditions.is_some_and(|all| all.iter().any(met)), "{member} is not {wanted}: {conditions:?}");
            }
            // Karmada counts nodes with informers, which it starts after the first check.
            ensure!(cluster.pointer("/status/nodeSummary/totalNum").is_some(), "{member} has no nodes yet");
            Ok(cluster)
        })
    }
}
