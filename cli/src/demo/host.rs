//! The host cluster: that of a kubeconfig, or a dev-apiserver in this process with a service account for the agent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use dev_apiserver::{DevApiserver, Options};
use kubeconfig::{Document, certificate_user, data};
use ops::drain::Tasks;
use ops::listen::{ListenAddr, Listener};
use ops::pki::{Authority, PemPair};
use ops::tls::ClientCa;
use rustls_pki_types::ServerName;
use serde_json::{Map, Value};

use super::client::Client;
use super::files::Accounts;
use crate::kubeconfig::existing;

/// The agent's service account and role, as on any host.
const AGENT_RBAC: &str = include_str!("../../../configs/kubernetes/agent-rbac.yaml");
/// The user name of the service account. A certificate with this name works like a token, and does not expire after an
/// hour.
const AGENT_USER: &str = "system:serviceaccount:atoll-system:proxy-agent";
const AGENT_GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:atoll-system"];

/// The lifetime of certificates. No demo runs for longer.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// The grace period of requests when dev-apiserver ends. proxy-server and proxy-agent have ended before.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The host cluster.
pub(super) enum Host {
    /// The current context of this kubeconfig.
    Given { kubeconfig: PathBuf, administrator: Document },
    /// A dev-apiserver.
    Dev(Box<DevHost>),
}

/// A dev-apiserver, and the credentials of its clients. It keeps its own keys in memory, and writes those of clients to
/// files.
pub(super) struct DevHost {
    address: SocketAddr,
    tasks: Tasks,
    ca: String,
    pub(super) administrator: PemPair,
    pub(super) agent: PemPair,
}

// === impl Host ===

impl Host {
    /// Reads the kubeconfig, or starts a dev-apiserver if there is none.
    pub(super) async fn find(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        match kubeconfig {
            Some(path) => {
                let administrator = existing::flattened(path)?;
                Ok(Self::Given { kubeconfig: path.to_owned(), administrator })
            }
            None => Ok(Self::Dev(Box::new(DevHost::start().await.context("cannot start dev-apiserver")?))),
        }
    }

    /// The clients of the host cluster.
    pub(super) fn accounts(&self) -> Accounts {
        match self {
            Self::Given { administrator, .. } => Accounts { administrator: administrator.clone(), agent: None },
            Self::Dev(dev) => {
                Accounts { administrator: dev.document(&dev.administrator), agent: Some(dev.document(&dev.agent)) }
            }
        }
    }

    /// Stops the dev-apiserver, if there is one.
    pub(super) async fn end(self, hurry: impl Future) {
        if let Self::Dev(dev) = self {
            dev.tasks.drain(GRACE_PERIOD, hurry).await;
        }
    }
}

// === impl DevHost ===

impl DevHost {
    async fn start() -> anyhow::Result<Self> {
        // Any free port: clients read the address from a kubeconfig, and 6443 is often in use.
        let address: ListenAddr = "127.0.0.1:0".parse()?;
        let listener = Listener::bind(&address, CONNECTIONS).await?;
        let authority = Authority::create("dev-apiserver", LIFETIME)?;
        let names = [ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into()), ServerName::try_from("localhost")?];
        let ca = authority.certificate_pem().to_owned();
        let options = Options {
            listener,
            certificate: authority.issue_server(&names, LIFETIME)?,
            serving_ca: ca.clone(),
            client_ca: ClientCa::from_pem(ca.as_bytes())?,
        };
        let administrator = authority.issue_client("admin", &["system:masters"], LIFETIME)?;
        let agent = authority.issue_client(AGENT_USER, &AGENT_GROUPS, LIFETIME)?;
        let tasks = Tasks::new();
        let address = DevApiserver::start(options, &tasks).address();
        let dev = Self { address, tasks, ca, administrator, agent };
        dev.apply(AGENT_RBAC).await.context("configs/kubernetes/agent-rbac.yaml")?;
        Ok(dev)
    }

    /// Its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Creates the objects of a manifest as the administrator.
    async fn apply(&self, manifest: &str) -> anyhow::Result<()> {
        let client = self.client(&self.administrator)?;
        for object in serde_saphyr::from_multiple::<Value>(manifest)? {
            client.create(&collection(&object)?, &object).await.with_context(|| object["kind"].to_string())?;
        }
        Ok(())
    }

    pub(super) fn client(&self, user: &PemPair) -> anyhow::Result<Client> {
        Client::host(self.address, &self.ca, user)
    }

    fn document(&self, user: &PemPair) -> Document {
        let server = format!("https://{}", self.address);
        let ca = ("certificate-authority-data".to_owned(), data(self.ca.as_bytes()));
        Document {
            name: "host".to_owned(),
            cluster: Map::from_iter([ca, ("server".to_owned(), server.into())]),
            user: certificate_user(user.certificate.as_bytes(), user.key.expose().as_bytes()),
            namespace: None,
        }
    }
}

/// The collection of an object. Only the kinds in the manifest of the agent's account are supported.
fn collection(object: &Value) -> anyhow::Result<String> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Ok(match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "Role" => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"),
        "RoleBinding" => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"),
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".to_owned(),
        kind => bail!("unsupported kind {kind}"),
    })
}
