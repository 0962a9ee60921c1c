//! The files that the configuration names. All of them are reloaded.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use audit::{Auditors, Opened};
use ops::drain::Tasks;
use ops::files::{LoadError, Reloader, Watched};
use ops::metrics::Registry as Metrics;
use ops::pki::Authority;
use ops::tls::{ClientCa, MintedCertificates, agent_listener_config};
use protocol::registration::Mode;
use rustls::ServerConfig;
use rustls_pki_types::ServerName;
use tokio::sync::Semaphore;

use crate::client_cas::{ClientCas, client_ca};
use crate::config::{KeyPair, ProxyServerConfiguration};
use crate::enrolment::tokens::Tokens;
use crate::enrolment::{CONCURRENT, Enrolment};
use crate::issuers::Issuers;
use crate::registry::Registry;
use crate::revocations::Revocations;

/// Everything that is read at the start.
pub(super) struct Files {
    pub(super) serving_ca: Watched<Authority>,
    pub(super) agent_ca: Watched<ClientCa>,
    pub(super) client_cas: Arc<ClientCas>,
    pub(super) issuers: Arc<Issuers>,
    pub(super) auditors: Arc<Auditors>,
    pub(super) enrolment: Option<Arc<Enrolment>>,
}

/// Reads all files, and opens the audit logs. Begins to fetch the keys of issuers, as `tasks`.
pub(super) fn open(
    config: &ProxyServerConfiguration,
    reloader: &Reloader,
    metrics: &Metrics,
    tasks: &Tasks,
) -> anyhow::Result<Files> {
    let KeyPair { certificate, key } = &config.serving_ca;
    let serving_ca = authority(reloader, certificate, key).context("servingCA")?;
    let agent_ca = client_ca(reloader, &config.agent_ca.certificate).context("agentCA")?;
    let revocations = config.revocations.as_ref().map(|path| path.to_path_buf());
    let revocations = Revocations::open(revocations.as_deref(), reloader).context("revocations")?;
    let client_cas = Arc::new(ClientCas::new(revocations.clone()));
    client_cas.exchange(client_cas.read(config, reloader)?);
    let enrolment = match (&config.enrolment, &config.agent_ca.key) {
        (Some(enrolment), Some(key)) => Some(Arc::new(Enrolment {
            tokens: Tokens::new(enrolment.tokens.to_path_buf()),
            agent_ca: authority(reloader, &config.agent_ca.certificate, key).context("agentCA")?,
            serving_ca: serving_ca.clone(),
            revocations,
            lifetime: enrolment.certificate_lifetime.into(),
            turns: Arc::new(Semaphore::new(CONCURRENT)),
        })),
        _ => None,
    };
    let issuers = Issuers::new(tasks.child(), metrics);
    issuers.exchange(issuers.read(config, reloader)?);
    let auditors = Auditors::new(metrics);
    auditors.exchange(open_audit_logs(&auditors, config, reloader)?);
    Ok(Files { serving_ca, agent_ca, client_cas, issuers: issuers.into(), auditors: auditors.into(), enrolment })
}

fn authority(reloader: &Reloader, certificate: &Path, key: &Path) -> Result<Watched<Authority>, LoadError> {
    let files = [certificate.to_path_buf(), key.to_path_buf()];
    reloader.watch(files, |[certificate, key]| Authority::from_pem(certificate, key))
}

/// Opens the audit logs of a configuration that are not open yet.
pub(super) fn open_audit_logs(
    auditors: &Auditors,
    config: &ProxyServerConfiguration,
    reloader: &Reloader,
) -> anyhow::Result<Opened> {
    let default = config.audit.as_deref();
    let wanted = config.clusters.iter().filter_map(|cluster| Some((&cluster.name, cluster.audit(default)?)));
    auditors.open(wanted, reloader).context("audit")
}

// === impl Files ===

impl Files {
    /// TLS of the listener for agents.
    pub(super) fn agent_tls(&self, certificates: &Arc<MintedCertificates>) -> ServerConfig {
        let may_enrol = self.enrolment.is_some();
        agent_listener_config(certificates.clone(), self.agent_ca.clone(), may_enrol, &[protocol::upgrade::ALPN])
    }

    /// The certificates of the listeners and endpoints.
    pub(super) fn certificates(
        &self,
        config: &ProxyServerConfiguration,
        registry: &Arc<Registry>,
    ) -> MintedCertificates {
        let names = config.host_names.iter().filter_map(|name| ServerName::try_from(name.to_string()).ok());
        let registry = Arc::clone(registry);
        MintedCertificates::new(self.serving_ca.clone(), &config.domain, names.collect(), move |name| {
            registry.clusters().get(name).is_some_and(|cluster| cluster.mode == Mode::Virtual)
        })
    }
}
