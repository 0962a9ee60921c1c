//! Virtual clusters on a host cluster, with clients for every route to their endpoints.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::curl::Curl;
use crate::process::Process;
use crate::route::{DOMAIN, Route};
use crate::site::atoll;
use crate::{HostCluster, Kubectl, Nodes, Site, eventually};

const AGENT: &str = "site-a";

/// What the agent prints when it knows whether the host enforces its admission policies.
const POLICIES_SETTLED: [&str; 3] = [
    "the host's admission policies are in force",
    "the host does not enforce the admission policies, which",
    "cannot verify that the host enforces the admission policies, which",
];
/// The time limit for that, on a busy host.
const POLICIES_TIMEOUT: Duration = Duration::from_secs(20);

/// The settings of the agent for shared objects and for custom resources of the host.
const SHARED: &str = "sharedObjects: {writable: [customresourcedefinitions.apiextensions.k8s.io, \
                      priorityclasses.scheduling.k8s.io, storageclasses.storage.k8s.io, \
                      volumeattributesclasses.storage.k8s.io, pulleys.custom.example.com], \
                      customResourceDefinitions: {allowedGroups: [allowed.operators.k8s.io]}, \
                      storageClasses: {provisioners: [example.com/disks]}}\n\
                      customResources: [\
                      {resource: sprockets.custom.example.com, objects: renamed}, \
                      {resource: wheels.custom.example.com, objects: renamed}, \
                      {resource: chains.custom.example.com, objects: renamed}, \
                      {resource: levers.custom.example.com, objects: read}, \
                      {resource: devices.custom.example.com, objects: read}, \
                      {resource: pulleys.custom.example.com, objects: shared}]";

/// A host cluster, a proxy-server, and an agent with the rights of `configs/kubernetes/agent-rbac.yaml`.
#[derive(Debug)]
pub struct VirtualSite {
    // Dropped in this order, so that no process uses one that has ended.
    agent: Process,
    site: Site,
    host: Arc<HostCluster>,
    kubeconfigs: AtomicUsize,
}

/// How an agent shares watches.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The memory of the hub.
    pub memory_mib: u32,
    /// The kubeconfig of the agent, if it is not that of the host.
    pub kubeconfig: Option<PathBuf>,
}

// === impl Sharing ===

impl Default for Sharing {
    fn default() -> Self {
        Self { memory_mib: 32, kubeconfig: None }
    }
}

// === impl VirtualSite ===

impl VirtualSite {
    /// Starts all processes, and waits until the virtual clusters are provisioned. Each is a name, and the value of the
    /// label `location` of its nodes.
    pub fn start(clusters: &[(&str, &'static str)]) -> anyhow::Result<Self> {
        Self::on(HostCluster::up(1)?, clusters)
    }

    /// Like [`VirtualSite::start`], on an existing host.
    pub fn on(host: impl Into<Arc<HostCluster>>, clusters: &[(&str, &'static str)]) -> anyhow::Result<Self> {
        let slices: Vec<_> = clusters.iter().map(|(name, location)| (*name, Nodes::Location(location))).collect();
        Self::of(host, &slices)
    }

    /// Like [`VirtualSite::on`], with any selection of nodes.
    pub fn of(host: impl Into<Arc<HostCluster>>, clusters: &[(&str, Nodes)]) -> anyhow::Result<Self> {
        Self::with(host, clusters, "")
    }

    /// Like [`VirtualSite::of`], with more keys in the proxy-server's configuration.
    pub fn with(host: impl Into<Arc<HostCluster>>, clusters: &[(&str, Nodes)], keys: &str) -> anyhow::Result<Self> {
        let slices: Vec<_> = clusters.iter().map(|(name, nodes)| (*name, nodes.entry(name))).collect();
        Self::configured(host, &slices, keys)
    }

    /// Like [`VirtualSite::on`], with an agent that accepts a host without admission policies.
    pub fn unprotected(host: impl Into<Arc<HostCluster>>, clusters: &[(&str, &'static str)]) -> anyhow::Result<Self> {
        let slices: Vec<_> =
            clusters.iter().map(|(name, location)| (*name, Nodes::Location(location).entry(name))).collect();
        Self::with_agent_keys(host, &slices, "", (", unsafeDirectAccess: true", ""))
    }

    /// Like [`VirtualSite::on`], with an agent that compresses, as if the network were slow.
    pub fn compressing(host: impl Into<Arc<HostCluster>>, clusters: &[(&str, &'static str)]) -> anyhow::Result<Self> {
        let slices: Vec<_> =
            clusters.iter().map(|(name, location)| (*name, Nodes::Location(location).entry(name))).collect();
        Self::with_agent_keys(host, &slices, "", ("", "compression: always\n"))
    }

    /// Like [`VirtualSite::on`], with an agent whose hub serves watches.
    pub fn sharing(
        host: impl Into<Arc<HostCluster>>,
        clusters: &[(&str, &'static str)],
        sharing: Sharing,
    ) -> anyhow::Result<Self> {
        let host = host.into();
        let slices: Vec<_> =
            clusters.iter().map(|(name, location)| (*name, Nodes::Location(location).entry(name))).collect();
        let Sharing { memory_mib, kubeconfig } = sharing;
        let kubeconfig = kubeconfig.unwrap_or_else(|| host.agent_kubeconfig());
        Self::with_agent(host, &slices, "", (&kubeconfig, "", &format!("hub: {{memoryMiB: {memory_mib}}}\n")))
    }

    /// Like [`VirtualSite::with`], with the whole entry of each cluster in `virtualClusters` of the agent.
    pub fn configured(
        host: impl Into<Arc<HostCluster>>,
        clusters: &[(&str, String)],
        keys: &str,
    ) -> anyhow::Result<Self> {
        Self::with_agent_keys(host, clusters, keys, ("", ""))
    }

    /// Like [`VirtualSite::configured`], with more keys of the agent: in `host`, and at the top.
    fn with_agent_keys(
        host: impl Into<Arc<HostCluster>>,
        clusters: &[(&str, String)],
        keys: &str,
        (host_keys, agent_keys): (&str, &str),
    ) -> anyhow::Result<Self> {
        let host = host.into();
        let kubeconfig = host.agent_kubeconfig();
        Self::with_agent(host, clusters, keys, (&kubeconfig, host_keys, agent_keys))
    }

    /// The same, with the kubeconfig of the agent.
    fn with_agent(
        host: Arc<HostCluster>,
        clusters: &[(&str, String)],
        keys: &str,
        (kubeconfig, host_keys, agent_keys): (&Path, &str, &str),
    ) -> anyhow::Result<Self> {
        let names: Vec<&str> = clusters.iter().map(|(name, _)| *name).collect();
        let entries: Vec<String> = names.iter().map(|name| entry(name)).collect();
        let site = Site::start_with(&entries.iter().map(String::as_str).collect::<Vec<_>>(), &names, keys)?;
        let slices: Vec<&str> = clusters.iter().map(|(_, entry)| entry.as_str()).collect();
        let body = format!(
            "host: {{kubeconfig: {}{host_keys}}}\n{agent_keys}{SHARED}\nvirtualClusters: [{}]",
            kubeconfig.display(),
            slices.join(", ")
        );
        let mut agent = site.agent(AGENT, &body)?;
        agent.printed("tunnel established")?;
        for name in names {
            agent.printed(&format!("the virtual cluster is provisioned cluster={name}\n"))?;
        }
        // Requests that come earlier get 503. Some trials are about hosts that never enforce the policies, so this is no error.
        let _ = eventually(POLICIES_TIMEOUT, || {
            ensure!(POLICIES_SETTLED.iter().any(|text| agent.log().contains(text)), "{}", agent.log());
            Ok(())
        });
        Ok(Self { agent, site, host, kubeconfigs: AtomicUsize::new(0) })
    }

    /// The proxy-server with its files.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The agent.
    pub fn agent(&self) -> &Process {
        &self.agent
    }

    /// The sum of the time series of the agent whose names begin in this way.
    pub fn metric(&self, name: &str) -> anyhow::Result<u64> {
        let metrics = self.page("/metrics")?;
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        lines.map(|line| Ok(line.rsplit_once(' ').context("no value")?.1.parse::<u64>()?)).sum()
    }

    /// A page of the agent's admin listener.
    pub fn page(&self, path: &str) -> anyhow::Result<String> {
        let admin = self.site.admin(AGENT)?;
        Ok(Curl::plain(admin.strip_prefix("http://").context("not a URL")?).get(path)?.body)
    }

    /// The host cluster.
    pub fn host(&self) -> &HostCluster {
        &self.host
    }

    /// kubectl as `admin` of `system:masters`.
    pub fn administrator(&self, cluster: &str, route: Route) -> anyhow::Result<Kubectl> {
        self.issue(cluster, route, &["--admin"])
    }

    /// kubectl as a user with this name, without groups.
    pub fn user(&self, cluster: &str, name: &str) -> anyhow::Result<Kubectl> {
        self.issue(cluster, Route::Proxy, &["--user", name])
    }

    /// curl with the certificate of `admin` of `system:masters`.
    pub fn curl(&self, cluster: &str, route: Route) -> anyhow::Result<Curl> {
        self.curl_like(&self.administrator(cluster, route)?, cluster, route)
    }

    /// curl with the client certificate of this kubectl.
    pub fn curl_like(&self, kubectl: &Kubectl, cluster: &str, route: Route) -> anyhow::Result<Curl> {
        let Credentials { authority, certificate, key } = Credentials::of(kubectl)?;
        Ok(Curl::new(route, cluster, self.site.ports, &authority).with_certificate(&certificate, &key))
    }

    /// kubectl with a new kubeconfig of `atoll kubeconfig`.
    fn issue(&self, cluster: &str, route: Route, more: &[&str]) -> anyhow::Result<Kubectl> {
        let number = self.kubeconfigs.fetch_add(1, Ordering::Relaxed);
        let file = self.site.file(&format!("{cluster}-{number}.kubeconfig"));
        let config = self.site.file("server.yaml");
        let mut arguments = vec!["kubeconfig", cluster, "--server-config", text(&config)?, "-o", text(&file)?];
        arguments.extend(more);
        let server = format!("https://127.0.0.1:{}", self.site.ports.endpoint);
        match route {
            Route::Proxy => {}
            Route::Path => arguments.push("--direct"),
            Route::Sni => arguments.extend(["--direct", "--server", &server]),
        }
        atoll(&arguments)?;
        let kubectl = Kubectl::new(file);
        if route == Route::Sni {
            // The name cannot be resolved here, so it is used only for the handshake.
            let name = format!("{cluster}.{DOMAIN}");
            kubectl.ok(&["config", "set-cluster", cluster, &format!("--tls-server-name={name}")])?;
        }
        Ok(kubectl)
    }
}

/// The files of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The CA of the server's certificate.
    pub authority: PathBuf,
    /// The client's certificate.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
}

// === impl Credentials ===

impl Credentials {
    /// Writes the inline data of a kubeconfig to files in the same directory.
    pub fn of(kubectl: &Kubectl) -> anyhow::Result<Self> {
        let inline = |section: &str, key: &str| {
            let template = format!("go-template={{{{index (index .{section} \"{key}\" | base64decode}}}}");
            let pem = kubectl.ok(&["config", "view", "--raw", "-o", &template])?;
            let file = kubectl.kubeconfig().with_extension(key);
            std::fs::write(&file, pem).with_context(|| format!("cannot write {}", file.display()))?;
            anyhow::Ok(file)
        };
        Ok(Self {
            authority: inline("clusters 0).cluster", "certificate-authority-data")?,
            certificate: inline("users 0).user", "client-certificate-data")?,
            key: inline("users 0).user", "client-key-data")?,
        })
    }
}

fn entry(name: &str) -> String {
    crate::site::entry(name, AGENT)
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
