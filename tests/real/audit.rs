//! The audit log of a virtual cluster: its events are those that kube-apiserver writes for the same requests.

mod compare;
mod delivery;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{Credentials, Curl, HostCluster, Kubectl, Nodes, Route, Site, eventually, site};
use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;

use crate::case;

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        case("audit::events_are_those_of_kube_apiserver", host, compare::events_are_those_of_kube_apiserver),
        case("audit::a_webhook_gets_the_events", host, delivery::a_webhook_gets_the_events),
    ]
}

/// A site with one virtual cluster and its audit log.
struct Audited {
    site: Site,
    _agent: Process,
    admin: Kubectl,
    cluster: &'static str,
    logs: PathBuf,
    _dir: TempDir,
}

// === impl Audited ===

impl Audited {
    /// Starts a site. `keys` are more keys of `audit`. `DIR` in them stands for a new directory, for which `prepare` is called.
    fn start(
        host: &HostCluster,
        cluster: &'static str,
        keys: &str,
        prepare: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-audit-").tempdir()?;
        prepare(dir.path())?;
        let logs = dir.path().join("logs");
        let text = |path: &Path| path.to_str().map(str::to_owned).context("temporary directories have UTF-8 names");
        let keys = keys.replace("DIR", &text(dir.path())?);
        let keys = format!("audit: {{log: {{path: \"{}/{{cluster}}.log\"}}{keys}}}", text(&logs)?);
        let id = format!("site-{cluster}");
        let site = Site::start_with(&[&site::entry(cluster, &id)], &[cluster], &keys)?;
        let body = format!(
            "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
            host.agent_kubeconfig().display(),
            Nodes::Location("beijing").entry(cluster)
        );
        let mut agent = site.agent(&id, &body)?;
        agent.printed("the virtual cluster is provisioned")?;
        agent.printed("tunnel established")?;
        let kubeconfig = site.file("admin.kubeconfig");
        let (config, output) = (text(&site.file("server.yaml"))?, text(&kubeconfig)?);
        // The administrator of the host has the same names.
        let who = ["--user", "kubernetes-admin", "--group", "system:masters"];
        site::atoll(&[&["kubeconfig", cluster, "--server-config", &config, "-o", &output][..], &who].concat())?;
        let admin = Kubectl::new(kubeconfig);
        eventually(CONDITION_TIMEOUT, || admin.ok(&["get", "--raw", "/api/v1/namespaces/default"]))?;
        Ok(Self { site, _agent: agent, admin, cluster, logs, _dir: dir })
    }

    /// The log file.
    fn log(&self) -> PathBuf {
        self.logs.join(format!("{}.log", self.cluster))
    }

    /// curl as the administrator, by the path that names the cluster.
    fn curl(&self) -> anyhow::Result<Curl> {
        let Credentials { authority, certificate, key } = Credentials::of(&self.admin)?;
        Ok(Curl::new(Route::Path, self.cluster, self.site.ports, &authority).with_certificate(&certificate, &key))
    }
}

/// The events of a log file.
fn events(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
}
