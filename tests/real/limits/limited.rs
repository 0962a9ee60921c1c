//! A virtual cluster with limits for what it stores.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Kubectl, Nodes, Route, VirtualSite, eventually};

/// A virtual cluster with limits and another one, and the token of a service account of the first one at the host.
pub(super) struct Limited {
    pub(super) site: VirtualSite,
    pub(super) cluster: String,
    pub(super) other: String,
    pub(super) admin: Kubectl,
    pub(super) direct: Kubectl,
}

// === impl Limited ===

impl Limited {
    /// The virtual cluster has these `shares`, and the namespaces `default` and `second`. The service account may do everything.
    pub(super) fn start(host: Arc<HostCluster>, name: &str, shares: &str) -> anyhow::Result<Self> {
        let (cluster, other) = (format!("{name}-a"), format!("{name}-b"));
        let entry = Nodes::Location("beijing").entry(&cluster);
        let entry = entry.strip_suffix('}').context("no entry")?;
        let limited = format!("{entry}, shares: {{{shares}}}}}");
        let entries = [(cluster.as_str(), limited), (other.as_str(), Nodes::Location("hangzhou").entry(&other))];
        let site = VirtualSite::configured(host, &entries, "")?;
        let admin = site.administrator(&cluster, Route::Path)?;
        admin.ok(&["create", "namespace", "second"])?;
        admin.ok(&["create", "serviceaccount", "direct", "-n", "default"])?;
        let account = "--serviceaccount=default:direct";
        admin.ok(&["create", "clusterrolebinding", "direct", "--clusterrole=cluster-admin", account])?;
        let token = admin.ok(&["create", "token", "direct", "-n", "default"])?;
        let direct = site.host().with_token(token.trim())?;
        Ok(Self { site, cluster, other, admin, direct })
    }

    /// The name of a namespace on the host.
    pub(super) fn on_host(&self, namespace: &str) -> String {
        format!("{namespace}-{}", self.cluster)
    }

    /// Waits until a command of the service account at the host is refused. `args` are those of an attempt.
    pub(super) fn is_refused(&self, words: &str, args: impl Fn(usize) -> Vec<String>) -> anyhow::Result<()> {
        let mut attempt = 0;
        eventually(CONDITION_TIMEOUT, || {
            attempt += 1;
            let args = args(attempt);
            let output = self.direct.run(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
            ensure!(output.code != 0 && output.stderr.contains(words), "{args:?}: {output:?}");
            ensure!(output.stderr.contains("forbidden"), "{output:?}");
            Ok(())
        })
    }
}
