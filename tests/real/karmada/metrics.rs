//! A metrics server of the host.

use std::path::Path;

use anyhow::ensure;
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, eventually, paths};

use super::SETTLED;

/// The objects of a metrics server, with the address of this process.
const REGISTERED: &str = r"
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system, port: PORT}
";

/// A running metrics server.
pub(super) struct Metrics {
    host: Kubectl,
    _server: Process,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn start(host: &HostCluster) -> anyhow::Result<Self> {
        let port = paths::free_port().to_string();
        let program = paths::workspace().join("tests/kube/metrics");
        let args = [&*host.dir().to_string_lossy(), &port];
        let mut server = Process::start("metrics", &program, &args, host.dir().join("logs/metrics.log"))?;
        server.printed("ready")?;
        reach(&host.dir().join("pod-targets"), &port)?;
        let metrics = Self { host: host.kubectl(), _server: server };
        metrics.host.ok_with(&["apply", "-f", "-"], &REGISTERED.replace("PORT", &port))?;
        eventually(SETTLED, || {
            let seen = metrics.host.ok(&["get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"])?;
            ensure!(seen.contains("hangzhou-2"), "{seen}");
            Ok(())
        })?;
        Ok(metrics)
    }
}

impl Drop for Metrics {
    /// Removes the APIService. Without a server, it would make the discovery of all clusters incomplete.
    fn drop(&mut self) {
        let _ = self.host.run(&["delete", "apiservice", "v1beta1.metrics.k8s.io"]);
        let _ = self.host.run(&["delete", "service", "metrics-server", "-n=kube-system"]);
    }
}

/// The endpoints of the Service.
fn reach(targets: &Path, port: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(targets)?;
    std::fs::write(targets, format!("{text}localhost:{port} 127.0.0.1:{port}\n"))?;
    Ok(())
}
