//! The processes of Atoll that are attacked, and the attacker's virtual cluster.

use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::{Curl, HostCluster, Kubectl, Nodes, Route, VirtualSite};
use serde_json::Value;

use crate::tenant::Tenant;
use crate::traffic::USER;

/// A proxy-server and an agent with two virtual clusters: one of the attacker, and one of the tenant.
pub(crate) struct AttackSite {
    pub(crate) site: VirtualSite,
    pub(crate) tenant: Tenant,
    /// The attacker's virtual cluster.
    pub(crate) cluster: String,
    /// Its administrator.
    pub(crate) admin: Kubectl,
    pub(crate) curl: Curl,
    /// A user of it without administrator rights.
    pub(crate) user: Kubectl,
}

// === impl AttackSite ===

impl AttackSite {
    /// Starts the processes. The number distinguishes the clusters from those of other attacks on the same host.
    pub(crate) fn new(host: &Arc<HostCluster>, number: usize) -> anyhow::Result<Self> {
        let (cluster, other) = (format!("attacker-{number}"), format!("tenant-{number}"));
        let clusters = [(cluster.as_str(), Nodes::Location("beijing")), (other.as_str(), Nodes::Location("hangzhou"))];
        let site = VirtualSite::with(Arc::clone(host), &clusters, "proxy: {tls: true}")?;
        let tenant = Tenant::new(&site.administrator(&other, Route::Path)?, site.site().ports.endpoint, other)?;
        let admin = site.administrator(&cluster, Route::Path)?;
        let curl = site.curl_like(&admin, &cluster, Route::Path)?;
        let user = site.user(&cluster, USER)?;
        Ok(Self { site, tenant, cluster, admin, curl, user })
    }

    /// The host's administrator.
    pub(crate) fn host(&self) -> Kubectl {
        self.site.host().kubectl()
    }

    /// Creates an object in the attacker's cluster. Some attacks provoke a refusal.
    pub(crate) fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let response = self.curl.send("POST", path, &object.to_string())?;
        // An attack that fills a quota is refused at some point.
        ensure!([201, 403, 413, 429].contains(&response.code), "{path}: {} {:.300}", response.code, response.body);
        Ok(())
    }

    /// Creates `count` copies of an object, each with a number after its name.
    pub(crate) fn create_all(&self, path: &str, count: usize, object: &Value) -> anyhow::Result<()> {
        let mut object = object.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (0..count).try_for_each(|number| {
            object["metadata"]["name"] = format!("{name}-{number}").into();
            self.create(path, &object)
        })
    }

    /// Grants a ClusterRole to the user.
    pub(crate) fn bind_user(&self, role: &str) -> anyhow::Result<()> {
        let arguments = ["create", "clusterrolebinding", "user", "--clusterrole", role, "--user", USER];
        self.admin.ok(&arguments).map(drop)
    }

    /// The process ID of the host's API server.
    pub(crate) fn host_api_server(&self) -> anyhow::Result<u32> {
        let file = self.site.host().dir().join("pids/kube-apiserver-1");
        let pid = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(pid.trim().parse()?)
    }
}
