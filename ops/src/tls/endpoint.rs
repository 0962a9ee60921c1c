//! TLS for the clients of a cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::minted::MintedCertificates;
use super::server::{ClientAuth, TlsVersions, server_config};
use super::{ALPN_H2, ALPN_HTTP1};

/// One server configuration per cluster, created when first needed, and one for the listener itself.
///
/// TLS 1.2 and 1.3, h2 and http/1.1, client certificates [`ClientAuth::Requested`]. Sessions are resumed by tickets
/// (RFC 8446 section 4.6.1), whose keys belong to one cluster. A ticket of one endpoint is invalid at another, so the
/// handshake there is a full one. There is no session cache, so an idle client costs no memory.
#[derive(Debug)]
pub struct EndpointTls {
    certificates: Arc<MintedCertificates>,
    listener: Arc<ServerConfig>,
    clusters: Mutex<HashMap<Box<str>, Arc<ServerConfig>>>,
}

/// Always the certificate of one cluster, which the CONNECT authority or the SNI has named. A client that expects
/// another name sees that it does not match.
#[derive(Debug)]
struct OneCluster {
    cluster: Box<str>,
    certificates: Arc<MintedCertificates>,
}

// === impl EndpointTls ===

impl EndpointTls {
    /// Takes the certificates to serve, which also know which clusters exist. Fails only without randomness.
    pub fn new(certificates: Arc<MintedCertificates>) -> Result<Self, rustls::Error> {
        let listener = Arc::new(resumable(Arc::clone(&certificates) as _)?);
        Ok(Self { certificates, listener, clusters: Mutex::default() })
    }

    /// For a connection to a cluster's endpoint. `None` if there is no such cluster now.
    pub fn cluster(&self, cluster: &str) -> Result<Option<Arc<ServerConfig>>, rustls::Error> {
        if !self.certificates.knows(cluster) {
            return Ok(None);
        }
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = clusters.get(cluster) {
            return Ok(Some(Arc::clone(config)));
        }
        // Keeps the map as small as the configuration, and removes the ticket keys of removed clusters.
        clusters.retain(|cluster, _| self.certificates.knows(cluster));
        let resolver = OneCluster { cluster: cluster.into(), certificates: Arc::clone(&self.certificates) };
        let config = Arc::new(resumable(Arc::new(resolver))?);
        clusters.insert(cluster.into(), Arc::clone(&config));
        Ok(Some(config))
    }

    /// For a direct connection, by the SNI of its `ClientHello` (see `tokio_rustls::LazyConfigAcceptor`): the cluster
    /// that it names and its configuration, or the listener's own configuration. Then the path (`/clusters/<name>`)
    /// must name the cluster.
    pub fn direct(&self, server_name: Option<&str>) -> Result<(Option<String>, Arc<ServerConfig>), rustls::Error> {
        let Some(cluster) = server_name.and_then(|name| self.certificates.cluster_of(name)) else {
            return Ok((None, Arc::clone(&self.listener)));
        };
        match self.cluster(&cluster)? {
            Some(config) => Ok((Some(cluster), config)),
            // Removed from the configuration just now.
            None => Ok((None, Arc::clone(&self.listener))),
        }
    }

    /// The certificates that are served.
    pub fn certificates(&self) -> &Arc<MintedCertificates> {
        &self.certificates
    }
}

fn resumable(resolver: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let mut config = server_config(resolver, ClientAuth::Requested, &[ALPN_H2, ALPN_HTTP1], TlsVersions::Tls12And13);
    config.ticketer = Ticketer::new()?;
    // One ticket is enough for clients that open one connection after another. Each ticket repeats the client's chain.
    config.send_tls13_tickets = 1;
    Ok(config)
}

// === impl OneCluster ===

impl ResolvesServerCert for OneCluster {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificates.for_cluster(&self.cluster)
    }
}

#[cfg(test)]
mod tests;
