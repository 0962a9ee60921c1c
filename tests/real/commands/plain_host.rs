//! A host cluster with the contents of one virtual cluster: the same nodes and the same administrator, without Atoll.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::compare::Side;
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::{HostCluster, Kubectl, eventually, paths};

/// The nodes that the virtual cluster does not have.
const OTHER_NODES: [&str; 2] = ["hangzhou-1", "hangzhou-2"];

/// A running host.
pub(super) struct PlainHost {
    host: HostCluster,
}

// === impl PlainHost ===

impl PlainHost {
    pub(super) fn up() -> anyhow::Result<Self> {
        let host = HostCluster::up(1)?;
        let kubectl = host.kubectl();
        let rbac = paths::workspace().join("configs/kubernetes/agent-rbac.yaml");
        kubectl.ok(&["delete", "--ignore-not-found", "-f", &rbac.display().to_string()])?;
        let delete: Vec<_> = ["delete", "node"].into_iter().chain(OTHER_NODES).collect();
        kubectl.ok(&delete)?;
        if everywhere_kubeedge() {
            // No agent adds a toleration here.
            kubectl.ok(&["taint", "nodes", "--all", "node-role.kubernetes.io/edge-"])?;
        }
        // The garbage collector deletes the Leases of the nodes. No new ones may appear.
        eventually(Duration::from_secs(60), || {
            let left = kubectl.ok(&["get", "nodes,leases", "-n", "kube-node-lease", "-o", "name"])?;
            ensure!(!OTHER_NODES.iter().any(|node| left.contains(node)), "{left}");
            Ok(())
        })?;
        Ok(Self { host })
    }

    /// The side, with the user and group of a virtual cluster's administrator.
    pub(super) fn side(&self, name: &'static str) -> anyhow::Result<Side> {
        let path = self.host.dir().join("commands.kubeconfig");
        std::fs::copy(self.host.kubectl().kubeconfig(), &path).context("cannot copy the kubeconfig")?;
        certificate(&self.host.dir().join("pki"))?;
        let kubectl = Kubectl::new(path);
        let file = |name: &str| self.host.dir().join("pki").join(name).display().to_string();
        kubectl.ok(&[
            "config",
            "set-credentials",
            "user",
            "--embed-certs",
            &format!("--client-certificate={}", file("commands.crt")),
            &format!("--client-key={}", file("commands.key")),
        ])?;
        Side::new(name, &kubectl)
    }
}

/// Creates `commands.crt` and `commands.key` for `admin` of `system:masters`.
fn certificate(pki: &Path) -> anyhow::Result<()> {
    let request = "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout commands.key \
                   -out commands.csr -subj /O=system:masters/CN=admin";
    let sign = "x509 -req -in commands.csr -CA ca.crt -CAkey ca.key -set_serial 1 -days 1 -out commands.crt";
    for arguments in [request, sign] {
        let output = Command::new("openssl").args(arguments.split_whitespace()).current_dir(pki).output()?;
        ensure!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
