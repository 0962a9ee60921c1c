//! The files of a demo, as `atoll certs`, `atoll kubeconfig` and an editor would create them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kubeconfig::{Document, certificate_user, data};
use ops::files::{Existing, Secrecy, write};
use ops::pki::{Authority, PemPair};
use serde_json::Map;

use super::clusters::{CLUSTERS, DemoCluster};
use super::ports::Ports;
use crate::certs::directory::{Directory, PairPath};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The lifetime of CAs. The demo reuses those of an earlier run.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The lifetime of other certificates, which are created at each start.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// A CA that expires within this time is replaced.
const MIN_REMAINING: Duration = DAY;

/// The identity of the agent.
const AGENT: &str = "demo";
const HOST_KUBECONFIG: &str = "host.kubeconfig";
/// The kubeconfig of the agent, if it has a separate account.
const AGENT_KUBECONFIG: &str = "agents/demo.kubeconfig";
/// Locked while a demo runs in the directory. The kernel releases the lock when the process ends.
const LOCK: &str = ".lock";

/// The written files, and the parts of them that the demo itself uses.
#[derive(Debug)]
pub(super) struct Files {
    /// As the user wrote it, for messages.
    dir: PathBuf,
    pub(super) ports: Ports,
    /// The CA of the endpoints' certificates.
    pub(super) serving_ca: String,
    administrators: Vec<PemPair>,
    /// The lock of the directory.
    _lock: File,
}

/// The clients of the host cluster, each with a kubeconfig.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    /// The user of the demo.
    pub(super) administrator: Document,
    /// The agent, if it has a separate account.
    pub(super) agent: Option<Document>,
}

/// A route to the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Through the HTTP proxy.
    Proxy,
    /// Directly to the listener.
    Direct,
}

// === impl Files ===

impl Files {
    /// Writes all files. It keeps the CAs of an earlier run, so that copies of kubeconfigs still work.
    pub(super) fn prepare(dir: &Path, accounts: &Accounts, ports: Ports) -> anyhow::Result<Self> {
        let lock = lock(dir)?;
        let certificates = Directory::new(dir)?;
        let serving_ca = authority(&certificates.serving_ca(), "Atoll serving CA")?;
        let agent_ca = authority(&certificates.agent_ca(), "Atoll agent CA")?;
        let no_groups: [&str; 0] = [];
        certificates.agent(AGENT).write(&agent_ca.issue_client(AGENT, &no_groups, LIFETIME)?, Existing::Replace)?;
        let administrators = CLUSTERS.iter().map(|cluster| {
            let name = format!("Atoll client CA of {}", cluster.name);
            let authority = authority(&certificates.client_ca(cluster.name), &name)?;
            anyhow::Ok(authority.issue_client("admin", &["system:masters"], LIFETIME)?)
        });
        let files = Self {
            dir: dir.to_owned(),
            ports,
            serving_ca: serving_ca.certificate_pem().to_owned(),
            administrators: administrators.collect::<anyhow::Result<_>>()?,
            _lock: lock,
        };
        files.put(&files.host_kubeconfig(), &accounts.administrator.to_yaml()?, Secrecy::Secret)?;
        if let Some(agent) = &accounts.agent {
            files.put(&dir.join(AGENT_KUBECONFIG), &agent.to_yaml()?, Secrecy::Secret)?;
        }
        files.put(&files.server_config(), &server_config(ports), Secrecy::Public)?;
        // Only dev-apiserver has a separate account for the agent, and it has no admission policies.
        let host = if accounts.agent.is_some() {
            format!("{AGENT_KUBECONFIG}, unsafeDirectAccess: true")
        } else {
            HOST_KUBECONFIG.to_owned()
        };
        files.put(&files.agent_config(), &agent_config(ports, &host), Secrecy::Public)?;
        for cluster in CLUSTERS {
            for route in [Route::Proxy, Route::Direct] {
                let kubeconfig = files.document(cluster, route).to_yaml()?;
                files.put(&files.kubeconfig(cluster, route), &kubeconfig, Secrecy::Secret)?;
            }
        }
        Ok(files)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The proxy-server's configuration.
    pub(super) fn server_config(&self) -> PathBuf {
        self.dir.join("proxy-server.yaml")
    }

    /// The proxy-agent's configuration.
    pub(super) fn agent_config(&self) -> PathBuf {
        self.dir.join("proxy-agent.yaml")
    }

    /// The kubeconfig of the host cluster's administrator.
    pub(super) fn host_kubeconfig(&self) -> PathBuf {
        self.dir.join(HOST_KUBECONFIG)
    }

    /// The kubeconfig of a virtual cluster's administrator.
    pub(super) fn kubeconfig(&self, cluster: DemoCluster, route: Route) -> PathBuf {
        self.dir.join(match route {
            Route::Proxy => format!("{}.kubeconfig", cluster.name),
            Route::Direct => format!("{}.direct.kubeconfig", cluster.name),
        })
    }

    /// The certificate in that kubeconfig.
    pub(super) fn administrator(&self, cluster: DemoCluster) -> &PemPair {
        let at = CLUSTERS.iter().position(|one| *one == cluster).expect("there are no other clusters");
        &self.administrators[at]
    }

    fn document(&self, cluster: DemoCluster, route: Route) -> Document {
        let Ports { proxy, endpoint, .. } = self.ports;
        let mut entry = Map::from_iter([("certificate-authority-data".to_owned(), data(self.serving_ca.as_bytes()))]);
        match route {
            Route::Proxy => {
                entry.insert("server".to_owned(), format!("https://{}:443", cluster.host()).into());
                entry.insert("proxy-url".to_owned(), format!("http://127.0.0.1:{proxy}").into());
            }
            Route::Direct => {
                let server = format!("https://127.0.0.1:{endpoint}/clusters/{}", cluster.name);
                entry.insert("server".to_owned(), server.into());
            }
        }
        let PemPair { certificate, key } = self.administrator(cluster);
        let user = certificate_user(certificate.as_bytes(), key.expose().as_bytes());
        Document { name: cluster.name.to_owned(), cluster: entry, user, namespace: None }
    }

    fn put(&self, path: &Path, text: &str, secrecy: Secrecy) -> anyhow::Result<()> {
        write(path, text.as_bytes(), secrecy, Existing::Replace)
            .with_context(|| format!("--dir {}", self.dir.display()))
    }
}

/// Locks the directory, because another process that writes there would replace files in use.
fn lock(dir: &Path) -> anyhow::Result<File> {
    let context = || format!("--dir {}", dir.display());
    std::fs::create_dir_all(dir).with_context(context)?;
    let lock = File::options().create(true).append(true).open(dir.join(LOCK)).with_context(context)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!("another `atoll demo` uses --dir {}: stop it, or set another --dir and --port-base 0", dir.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(context),
    }
}

/// The CA in these files, or a new one if there is none or it expires soon.
fn authority(path: &PairPath, name: &str) -> anyhow::Result<Authority> {
    if path.certificate.exists() && path.key.exists() {
        let found = path.read_authority()?;
        if found.not_after().duration_since(std::time::SystemTime::now()).is_ok_and(|left| left > MIN_REMAINING) {
            return Ok(found);
        }
    }
    let made = Authority::create(name, AUTHORITY_LIFETIME)?;
    path.write(made.pem(), Existing::Replace)?;
    Ok(made)
}

fn server_config(ports: Ports) -> String {
    let Ports { proxy, endpoint, agents, server_probes, server_admin, .. } = ports;
    let mut text = format!(
        "# `atoll demo` replaces this file each time it starts.\n\
         apiVersion: atoll.dev/v1alpha1\n\
         kind: ProxyServerConfiguration\n\
         listeners:\n\
         \x20 proxy: 127.0.0.1:{proxy}\n\
         \x20 endpoint: 127.0.0.1:{endpoint}\n\
         \x20 agents: 127.0.0.1:{agents}\n\
         \x20 probes: 127.0.0.1:{server_probes}\n\
         \x20 admin: 127.0.0.1:{server_admin}\n\
         servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}\n\
         agentCA: {{certificate: agent-ca.crt}}\n\
         drain: 2s\n\
         clusters:\n"
    );
    text.extend(CLUSTERS.iter().map(|DemoCluster { name, .. }| {
        let ca = format!("clusters/{name}/client-ca");
        format!("- {{name: {name}, agents: [{AGENT}], clientCA: {{certificate: {ca}.crt, key: {ca}.key}}}}\n")
    }));
    text
}

fn agent_config(ports: Ports, host: &str) -> String {
    let Ports { agents, agent_probes, agent_admin, .. } = ports;
    let mut text = format!(
        "# `atoll demo` replaces this file each time it starts.\n\
         apiVersion: atoll.dev/v1alpha1\n\
         kind: ProxyAgentConfiguration\n\
         servers: [127.0.0.1:{agents}]\n\
         identity: {{certificate: agents/{AGENT}.crt, key: agents/{AGENT}.key, serverCA: serving-ca.crt}}\n\
         listeners: {{probes: 127.0.0.1:{agent_probes}, admin: 127.0.0.1:{agent_admin}}}\n\
         host: {{kubeconfig: {host}}}\n\
         drain: 2s\n\
         virtualClusters:\n"
    );
    // The taint of KubeEdge's nodes. Without the taint, the toleration has no effect.
    let tolerations = "[{key: node-role.kubernetes.io/edge, operator: Exists, effect: NoSchedule}]";
    text.extend(CLUSTERS.iter().map(|DemoCluster { name, location }| {
        format!("- {{name: {name}, nodeSelector: {{location: {location}}}, tolerations: {tolerations}}}\n")
    }));
    text
}
