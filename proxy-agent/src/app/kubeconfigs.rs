//! Kubeconfigs of the virtual clusters that objects of the host declare, with certificates of a proxy-server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dial::Egress;
use dial::enrol::EnrolError;
use dial::user_certificate::{UserCredentials, certify_user};
use kubeconfig::{Document, certificate_user, data};
use ops::date::Moment;
use ops::files::Watched;
use ops::log::chain;
use ops::pki::only_certificates;
use ops::secret::Secret;
use ops::tls::Identity;
use protocol::user_certificate::{ClientAddress, User, UserCertificate};
use protocol::{Authority, ClusterName, RefusalReason};
use rustls::ClientConfig;
use serde_json::Map;
use virtual_cluster::declared::kubeconfigs::{IssueError, Issued, Issuer, Reason};

use crate::renew::due;

/// The proxy-servers of the configuration.
#[derive(Clone, Debug)]
pub(super) struct ProxyServers {
    pub(super) identity: Watched<Identity>,
    /// With the identity.
    pub(super) tls: Arc<ClientConfig>,
    pub(super) servers: Vec<Authority>,
    pub(super) egress: Arc<Egress>,
    /// The number of the one that has issued the last certificate: others may not answer.
    pub(super) last: Arc<AtomicUsize>,
}

// === impl ProxyServers ===

impl Issuer for ProxyServers {
    fn enrolled(&self) -> Moment {
        self.identity.borrow().enrolled().into()
    }

    /// Asks one after the other, and first the one that has issued the last certificate.
    async fn issue(&self, cluster: &ClusterName, user: &User) -> Result<Issued, IssueError> {
        let mut failure = IssueError { reason: Reason::Unavailable, message: "`servers` is empty".to_owned() };
        let first = self.last.load(Ordering::Relaxed);
        for number in (first..self.servers.len()).chain(0..first) {
            let Some(server) = self.servers.get(number) else { continue };
            match certify_user(&self.tls, server, &self.egress, cluster, user).await {
                Ok(credentials) => {
                    self.last.store(number, Ordering::Relaxed);
                    return render(cluster, &credentials);
                }
                // What a proxy-server says is worth more than that another one does not answer.
                Err(error) if failure.reason != Reason::RefusedByProxyServer => failure = failed(server, &error),
                Err(_) => {}
            }
        }
        Err(failure)
    }
}

fn failed(server: &Authority, error: &EnrolError) -> IssueError {
    let reason = match error {
        EnrolError::Refused(refusal) if refusal.reason != RefusalReason::Unavailable => Reason::RefusedByProxyServer,
        _ => Reason::Unavailable,
    };
    IssueError { reason, message: format!("{server}: {}", chain(error)) }
}

/// The file, and the times of its certificate.
fn render(cluster: &ClusterName, credentials: &UserCredentials) -> Result<Issued, IssueError> {
    let invalid =
        |why: String| IssueError { reason: Reason::Unavailable, message: format!("the response is not valid: {why}") };
    let UserCredentials { key, issued } = credentials;
    let UserCertificate { certificate, server_ca, address: ClientAddress { server, proxy_url } } = issued;
    let identity = Identity::from_pem(certificate.as_bytes(), key.expose().as_bytes());
    let validity = identity.map_err(|error| invalid(chain(&error).to_string()))?.validity();
    let authority = only_certificates(server_ca.as_bytes()).map_err(|error| invalid(chain(&error).to_string()))?;
    let mut entry = Map::new();
    entry.insert("server".to_owned(), server.as_str().into());
    entry.insert("certificate-authority-data".to_owned(), data(authority.as_bytes()));
    if let Some(url) = proxy_url {
        entry.insert("proxy-url".to_owned(), url.as_str().into());
    }
    let user = certificate_user(certificate.as_bytes(), key.expose().as_bytes());
    let document = Document { name: cluster.to_string(), cluster: entry, user, namespace: None };
    let kubeconfig = document.to_yaml().map_err(|error| invalid(error.to_string()))?;
    Ok(Issued {
        kubeconfig: Secret::from(kubeconfig),
        renewal: due(validity.not_before, validity.not_after).into(),
        expiry: validity.not_after.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use ops::pki;

    use super::*;

    #[test]
    fn a_kubeconfig_is_read_as_it_is_written() {
        let hour = Duration::from_secs(3600);
        let authority = pki::Authority::create("clients", hour * 24).unwrap();
        let pair = authority.issue_client("jane", &["dev"], hour).unwrap();
        let address = ClientAddress {
            server: "https://ke.atoll.internal:443".to_owned(),
            proxy_url: Some("https://proxy:8090".to_owned()),
        };
        let issued = UserCertificate {
            certificate: pair.certificate.clone(),
            server_ca: authority.certificate_pem().to_owned(),
            address,
        };
        let cluster = "ke".parse().unwrap();
        let render = |issued| render(&cluster, &UserCredentials { key: pair.key.clone(), issued });
        let rendered = render(issued.clone()).unwrap();
        let rest = rendered.renewal.time().duration_since(SystemTime::now()).unwrap();
        assert!(rest > hour / 2 && rest <= hour * 2 / 3, "{rest:?}");
        let text = rendered.kubeconfig.expose();
        for expect in ["server: https://ke.atoll.internal:443", "proxy-url: https://proxy:8090", "current-context: ke"]
        {
            assert!(text.contains(expect), "{expect} in {text}");
        }
        let direct = ClientAddress { server: "https://127.0.0.1:1/clusters/ke".to_owned(), proxy_url: None };
        let rendered = render(UserCertificate { address: direct, ..issued.clone() }).unwrap();
        assert!(!rendered.kubeconfig.expose().contains("proxy-url"));
        kubeconfig::parse::parse(rendered.kubeconfig.expose().as_bytes(), std::path::Path::new("/")).unwrap();

        let other = authority.issue_client("jane", &["dev"], hour).unwrap().certificate;
        for wrong in [
            UserCertificate { certificate: other, ..issued.clone() },
            UserCertificate { server_ca: "x".to_owned(), ..issued },
        ] {
            assert_eq!(render(wrong).unwrap_err().reason, Reason::Unavailable);
        }
    }
}
