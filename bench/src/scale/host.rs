//! The host cluster of a run, from `tests/kube/up`.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Context as _;
use http::Method;
use ops::drain::Tasks;
use serde_json::json;

use super::audit::Requests;
use super::member::Member;
use super::metrics;
use crate::child;
use crate::process::NamedProcess;

/// A running host cluster. It ends with the handle, or with this process.
pub(super) struct Host {
    scripts: PathBuf,
    dir: PathBuf,
    /// The host as its administrator sees it.
    pub(super) admin: Arc<Member>,
}

/// The user of the agent on the host.
const AGENT: &str = "system:serviceaccount:atoll-system:proxy-agent";
/// The processes of the host whose CPU time the report shows. It shows the sum of all others.
const SHOWN: [(&str, &str); 2] = [("kube-apiserver-1", "kube-apiserver"), ("etcd", "etcd")];

// === impl Host ===

impl Host {
    /// Starts a host in a folder that does not exist. `scripts` contains `up` and `down`, and `binaries` the components.
    pub(super) fn start(scripts: &Path, binaries: &Path, dir: &Path, tasks: &Tasks) -> anyhow::Result<Self> {
        let mut up = Command::new(scripts.join("up"));
        up.arg(dir).args(["--owner", &std::process::id().to_string()]).env("ATOLL_KUBE_BIN", binaries);
        child::run(&mut up)?;
        let admin = Member::of_kubeconfig(&dir.join("host.kubeconfig"), tasks)?;
        Ok(Self { scripts: scripts.to_owned(), dir: dir.to_owned(), admin })
    }

    /// Its processes, by their names in the report.
    pub(super) fn processes(&self) -> anyhow::Result<Vec<NamedProcess>> {
        let mut processes = Vec::new();
        for entry in std::fs::read_dir(self.dir.join("pids"))? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            if file == "owner-watch" {
                continue;
            }
            let pid = std::fs::read_to_string(entry.path())?.trim().parse().context("not a process id")?;
            let shown = SHOWN.iter().find(|(name, _)| *name == file).map_or(file.as_str(), |(_, name)| name);
            processes.push(NamedProcess { name: shown.to_owned(), pid });
        }
        processes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(processes)
    }

    pub(super) fn agent_kubeconfig(&self) -> PathBuf {
        self.dir.join("agent.kubeconfig")
    }

    /// Creates nodes with the label `location`. kwok makes them ready.
    pub(super) async fn create_nodes(&self, location: &str, count: u32) -> anyhow::Result<()> {
        for number in 0..count {
            let name = format!("{location}-{number}");
            let labels = json!({"location": location, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            self.admin.create("/api/v1/nodes", &node).await?;
        }
        Ok(())
    }

    /// The number of open watches of each resource.
    pub(super) async fn watches(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let body = self.admin.succeed(Method::GET, "/metrics", String::new()).await?;
        Ok(metrics::watches(&String::from_utf8_lossy(&body)))
    }

    /// The end of the audit log so far, for [`Host::agent_requests`].
    pub(super) fn audit_position(&self) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(self.audit_log())?.len())
    }

    /// The agent's own requests since this position of the audit log.
    pub(super) fn agent_requests(&self, since: u64) -> anyhow::Result<Requests> {
        let mut file = std::fs::File::open(self.audit_log())?;
        file.seek(SeekFrom::Start(since))?;
        let mut log = Vec::new();
        file.read_to_end(&mut log)?;
        Ok(Requests::of(AGENT, &String::from_utf8_lossy(&log)))
    }

    fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(child::run(Command::new(self.scripts.join("down")).arg(&self.dir)));
    }
}
