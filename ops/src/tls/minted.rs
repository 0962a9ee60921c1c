//! Server certificates that are issued when they are first requested.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;

use crate::files::Watched;
use crate::pki::{Authority, IssueError};

/// The lifetime of these certificates: 30 days. They are renewed after two thirds of it.
pub const SERVER_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// The time before a failed attempt is repeated. Handshakes are cheap for clients, so not every handshake may cause a
/// signature or a log line.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Certificates for `<cluster>.<domain>` and for the listener itself, under the serving CA.
///
/// Only existing clusters get one, so the cache is as large as the configuration. Certificates of removed clusters are
/// dropped when another one is issued. A new serving CA applies from the next handshake on.
pub struct MintedCertificates {
    authority: Watched<Authority>,
    /// `.atoll.internal`, lower case.
    suffix: String,
    listener_names: Vec<ServerName<'static>>,
    is_cluster: Box<dyn Fn(&str) -> bool + Send + Sync>,
    minted: Mutex<HashMap<For, Minted>>,
}

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum For {
    Listener,
    Cluster(Box<str>),
}

struct Minted {
    /// `None`: it could not be issued.
    certificate: Option<Arc<CertifiedKey>>,
    authority: Arc<Authority>,
    renew_at: SystemTime,
}

// === impl MintedCertificates ===

impl MintedCertificates {
    /// `listener_names` are the names by which clients that name no cluster reach the listener (host names, addresses).
    /// `localhost`, 127.0.0.1 and `::1` are always added. `is_cluster` says whether a cluster of that name exists now.
    pub fn new(
        authority: Watched<Authority>,
        domain: &str,
        listener_names: Vec<ServerName<'static>>,
        is_cluster: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let mut names = listener_names;
        let localhost = ServerName::try_from("localhost").expect("a DNS name");
        for name in [localhost, IpAddr::V4(Ipv4Addr::LOCALHOST).into(), IpAddr::V6(Ipv6Addr::LOCALHOST).into()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self {
            authority,
            suffix: format!(".{}", domain.to_ascii_lowercase()),
            listener_names: names,
            is_cluster: Box::new(is_cluster),
            minted: Mutex::default(),
        }
    }

    /// The cluster whose endpoint has this host name, if there is such a cluster.
    pub fn cluster_of(&self, host: &str) -> Option<String> {
        let host = host.to_ascii_lowercase();
        let cluster = host.strip_suffix(&self.suffix)?;
        self.knows(cluster).then(|| cluster.to_owned())
    }

    /// Whether there is a cluster of this name now.
    pub fn knows(&self, cluster: &str) -> bool {
        (self.is_cluster)(cluster)
    }

    /// The certificate of a cluster's endpoint. `None` if there is no such cluster, or signing failed (logged).
    pub fn for_cluster(&self, cluster: &str) -> Option<Arc<CertifiedKey>> {
        self.knows(cluster).then(|| self.get(For::Cluster(cluster.into()), SystemTime::now())).flatten()
    }

    /// The certificate with the listener's own names. `None` if signing failed (logged).
    pub fn for_listener(&self) -> Option<Arc<CertifiedKey>> {
        self.get(For::Listener, SystemTime::now())
    }

    fn get(&self, whom: For, now: SystemTime) -> Option<Arc<CertifiedKey>> {
        let authority = self.authority.borrow();
        // Held while signing (about 100 µs), so that a burst of first handshakes issues one certificate.
        let mut minted = self.minted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = minted.get(&whom)
            && now < found.renew_at
            && Arc::ptr_eq(&found.authority, &authority)
        {
            return found.certificate.clone();
        }
        minted.retain(|whom, _| match whom {
            For::Listener => true,
            For::Cluster(cluster) => self.knows(cluster),
        });
        let (certificate, renew_at) = match self.mint(&whom, &authority, now) {
            Ok((certificate, renew_at)) => (Some(Arc::new(certificate)), renew_at),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(?whom, error, "cannot issue a server certificate");
                (None, now + RETRY_AFTER)
            }
        };
        minted.insert(whom, Minted { certificate: certificate.clone(), authority, renew_at });
        certificate
    }

    fn mint(
        &self,
        whom: &For,
        authority: &Authority,
        now: SystemTime,
    ) -> Result<(CertifiedKey, SystemTime), IssueError> {
        let certificate = match whom {
            For::Listener => authority.issue_server_at(&self.listener_names, SERVER_LIFETIME, now),
            For::Cluster(cluster) => {
                let host = format!("{cluster}{}", self.suffix);
                let name = ServerName::try_from(host).map_err(|_| IssueError::Names)?;
                authority.issue_server_at(&[name], SERVER_LIFETIME, now)
            }
        }?;
        let not_after = authority.leaf_not_after(now, SERVER_LIFETIME)?;
        let life = not_after.duration_since(now).unwrap_or(Duration::ZERO);
        Ok((certificate, now + life * 2 / 3))
    }
}

impl ResolvesServerCert for MintedCertificates {
    /// Selects by SNI. Without SNI (clients never send an IP address), or if it names no cluster, this is the
    /// listener's own certificate. Like kube-apiserver's default certificate, it shows the right names, which an alert
    /// would not.
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match client_hello.server_name().and_then(|name| self.cluster_of(name)) {
            Some(cluster) => self.for_cluster(&cluster),
            None => self.for_listener(),
        }
    }
}

impl fmt::Debug for MintedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MintedCertificates").field("suffix", &self.suffix).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
