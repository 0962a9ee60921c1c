//! The files that the configuration names. All of them are reloaded.

use std::sync::Arc;

use anyhow::Context;
use ops::files::{Reloader, Watched};
use ops::pki::Authority;
use ops::tls::{ClientCa, MintedCertificates};
use protocol::registration::Mode;
use rustls_pki_types::ServerName;

use crate::client_cas::{ClientCas, client_ca};
use crate::config::{KeyPair, ProxyServerConfiguration};
use crate::registry::Registry;

/// Everything that is read at the start.
pub(super) struct Files {
    pub(super) serving_ca: Watched<Authority>,
    pub(super) agent_ca: Watched<ClientCa>,
    pub(super) client_cas: Arc<ClientCas>,
}

/// Reads all files.
pub(super) fn open(config: &ProxyServerConfiguration, reloader: &Reloader) -> anyhow::Result<Files> {
    let KeyPair { certificate, key } = &config.serving_ca;
    let serving_ca = reloader
        .watch([certificate.to_path_buf(), key.to_path_buf()], |[certificate, key]| {
            Authority::from_pem(certificate, key)
        })
        .context("servingCA")?;
    let agent_ca = client_ca(reloader, &config.agent_ca.certificate).context("agentCA")?;
    let client_cas = Arc::new(ClientCas::default());
    client_cas.exchange(client_cas.read(config, reloader)?);
    Ok(Files { serving_ca, agent_ca, client_cas })
}

// === impl Files ===

impl Files {
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
