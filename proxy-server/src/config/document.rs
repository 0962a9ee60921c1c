//! The keys at the top of the file.

use audit::config::Audit;
use ops::config::{Document, Duration, FilePath, Located, Problems, Unread};
use request_traces::config::{self as tracing, Tracing};
use rustls_pki_types::{DnsName, ServerName};
use serde::Deserialize;

use super::certificates::{AgentCa, KeyPair};
use super::cluster::{self, Cluster};
use super::enrolment::{self, Enrolment};
use super::grants::{self, Grants};
use super::karmada::{self, Karmada};
use super::limits::{self, Limits};
use super::listeners::{self, Listeners, ProxySecurity};
use super::peers::{self, Peers};

/// `kind: ProxyServerConfiguration`. Every key is described in `configs/proxy-server.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyServerConfiguration {
    /// Endpoints are `<cluster>.<domain>`.
    #[serde(default = "default_domain")]
    pub domain: Located<String>,
    /// Where to listen.
    #[serde(default)]
    pub listeners: Listeners,
    /// Names and addresses by which clients and agents reach this process. Its certificates contain them.
    #[serde(default)]
    pub host_names: Vec<Located<String>>,
    /// How the proxy listener is protected beyond loopback.
    #[serde(default)]
    pub proxy: ProxySecurity,
    /// Signs the certificates of the endpoints and listeners.
    #[serde(rename = "servingCA")]
    pub serving_ca: KeyPair,
    /// The CA of the agents' certificates.
    #[serde(rename = "agentCA")]
    pub agent_ca: AgentCa,
    /// How agents get certificates from this process.
    #[serde(default)]
    pub enrolment: Option<Located<Enrolment>>,
    /// The [`RevocationList`](super::RevocationList): certificates that are refused although they are valid.
    #[serde(default)]
    pub revocations: Option<Located<FilePath>>,
    /// The clusters, and the agents that may serve them.
    #[serde(default)]
    pub clusters: Vec<Located<Cluster>>,
    /// The virtual clusters that agents may add by themselves.
    #[serde(default)]
    pub grants: Option<Grants>,
    /// The audit logs of clusters that have none of their own.
    #[serde(default)]
    pub audit: Option<Located<Audit>>,
    /// Limits of clients.
    #[serde(default)]
    pub limits: Limits,
    /// Makes virtual clusters members of a Karmada control plane.
    #[serde(default)]
    pub karmada: Option<Karmada>,
    /// The other proxy-servers.
    #[serde(default)]
    pub peers: Option<Peers>,
    /// Exports traces of requests.
    #[serde(default)]
    pub tracing: Option<Tracing>,
    /// How long connections may take to end after SIGTERM.
    #[serde(default = "default_drain")]
    pub drain: Duration,
}

fn default_domain() -> Located<String> {
    "atoll.internal".to_owned().into()
}

fn default_drain() -> Duration {
    Duration::new(std::time::Duration::from_secs(30))
}

// === impl ProxyServerConfiguration ===

impl Document for ProxyServerConfiguration {
    const KIND: &'static str = "ProxyServerConfiguration";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }

    fn check(&self, problems: &mut Problems) {
        if DnsName::try_from(self.domain.as_str()).is_err() || self.domain.ends_with('.') {
            problems.at(&self.domain, format_args!("domain `{}` is not a DNS name", self.domain));
        }
        for name in &self.host_names {
            if ServerName::try_from(name.as_str()).is_err() {
                problems.at(name, format_args!("`{name}` is neither a DNS name nor an IP address"));
            }
        }
        listeners::check(&self.listeners, self.proxy, problems);
        cluster::check(&self.clusters, self.proxy.tls, problems);
        if let Some(grants) = &self.grants {
            grants::check(grants, problems);
        }
        cluster::check_audit(self.audit.as_ref(), &self.clusters, problems);
        limits::check(&self.limits, problems);
        if let Some(enrolment) = &self.enrolment {
            enrolment::check(enrolment, &self.agent_ca, problems);
        }
        if let Some(peers) = &self.peers {
            peers::check(peers, &self.host_names, problems);
        }
        if let Some(karmada) = &self.karmada {
            karmada::check(karmada, &self.clusters, self.grants.as_ref(), problems);
        }
        if let Some(tracing) = &self.tracing {
            tracing::check(tracing, problems);
        }
    }
}
