//! The host cluster of a run, from `tests/kube/up`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Context as _;
use ops::drain::Tasks;
use serde_json::json;

use super::member::Member;
use crate::child;
use crate::process::NamedProcess;

/// A running host cluster. It ends with the handle, or with this process.
pub(crate) struct Host {
    scripts: PathBuf,
    dir: PathBuf,
    /// The host as its administrator sees it.
    pub(crate) admin: Arc<Member>,
}

/// The processes of the host whose CPU time the report shows. It shows the sum of all others.
const SHOWN: [(&str, &str); 2] = [("kube-apiserver-1", "kube-apiserver"), ("etcd", "etcd")];

// === impl Host ===

impl Host {
    /// Starts a host in a folder that does not exist. `scripts` contains `up` and `down`, and `binaries` the components. `flags`
    /// are further flags of `up`.
    pub(crate) fn start(
        scripts: &Path,
        binaries: &Path,
        dir: &Path,
        flags: &[String],
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let mut up = Command::new(scripts.join("up"));
        up.arg(dir).args(["--owner", &std::process::id().to_string()]).args(flags).env("ATOLL_KUBE_BIN", binaries);
        child::run(&mut up)?;
        let admin = Member::of_kubeconfig(&dir.join("host.kubeconfig"), tasks)?;
        Ok(Self { scripts: scripts.to_owned(), dir: dir.to_owned(), admin })
    }

    /// Its processes, by their names in the report.
    pub(crate) fn processes(&self) -> anyhow::Result<Vec<NamedProcess>> {
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

    pub(crate) fn agent_kubeconfig(&self) -> PathBuf {
        self.dir.join("agent.kubeconfig")
    }

    /// The URL of its etcd.
    pub(crate) fn etcd_url(&self) -> anyhow::Result<String> {
        let file = self.dir.join("etcd-url");
        let url = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(url.trim().to_owned())
    }

    /// Creates nodes with the label `location`. kwok makes them ready.
    pub(crate) async fn create_nodes(&self, location: &str, count: u32) -> anyhow::Result<()> {
        for number in 0..count {
            let name = format!("{location}-{number}");
            let labels = json!({"location": location, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            self.admin.create("/api/v1/nodes", &node).await?;
        }
        Ok(())
    }

    /// The log of all requests to the host.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(child::run(Command::new(self.scripts.join("down")).arg(&self.dir)));
    }
}
