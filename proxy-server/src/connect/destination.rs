//! Who may reach an address at a site. Only the certificate of a client and the configuration decide, before the agent is asked
//! anything.
//!
//! ```text
//! CONNECT 10.2.0.7:5432 HTTP/1.1
//! atoll-cluster: branch-7
//! ```
//!
//! Sites often have the same private addresses, so the client names the cluster. It authenticates to the proxy listener with a
//! certificate of the cluster's `clientCA`, whose groups include one of [`GROUPS`].

use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderName, Request};
use protocol::Authority;
use rustls_pki_types::CertificateDer;

use super::refusal::ConnectRefusal;
use crate::client_cas::ClientCas;
use crate::config::Cluster;
use crate::registry::Clusters;

/// The cluster to whose site the bytes go.
pub(super) const CLUSTER: HeaderName = HeaderName::from_static("atoll-cluster");

/// The groups whose members may reach the destinations of a cluster. The first one has its administrators, too.
const GROUPS: [&str; 2] = ["system:masters", "atoll:destinations"];

/// A destination that a client may reach.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) cluster: Arc<Cluster>,
    pub(super) address: Authority,
    /// The common name of the client's certificate.
    pub(super) user: String,
}

/// Decides about a CONNECT that names a cluster in [`CLUSTER`]. `chain`: the certificates of the client, unverified.
///
/// A client without rights gets the same refusal for every cluster and every address, so it learns nothing about sites.
pub(super) fn authorize<B>(
    request: &Request<B>,
    address: Authority,
    clusters: &Clusters,
    client_cas: &ClientCas,
    chain: &[CertificateDer<'_>],
) -> Result<Allowed, ConnectRefusal> {
    let forbidden = || ConnectRefusal::Forbidden(address.clone());
    let name = request.headers().get(CLUSTER).and_then(|name| name.to_str().ok()).ok_or_else(forbidden)?;
    let cluster = clusters.get(name).ok_or_else(forbidden)?;
    let ca = client_cas.get(&cluster.name).ok_or_else(forbidden)?;
    let client = ca.borrow().verify(chain, SystemTime::now()).map_err(|_| forbidden())?;
    if !client.organizations.iter().any(|group| GROUPS.contains(&group.as_str())) {
        return Err(forbidden());
    }
    if !cluster.destinations.iter().any(|allowed| allowed.covers(&address)) {
        return Err(ConnectRefusal::NotADestination { cluster: cluster.name.clone(), address });
    }
    Ok(Allowed { cluster: Arc::clone(cluster), address, user: client.common_name })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use ops::files::Watched;
    use ops::pki::Authority as CertificateAuthority;
    use ops::tls::ClientCa;
    use protocol::registration::Mode;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    struct World {
        clusters: Clusters,
        client_cas: ClientCas,
        authority: CertificateAuthority,
    }

    impl World {
        /// Two clusters with different CAs. The second one has no destinations.
        fn new() -> Self {
            let cluster = |name: &str, destinations: &[&str]| {
                Arc::new(Cluster {
                    name: name.parse().unwrap(),
                    agents: vec!["site-a".parse().unwrap()],
                    mode: Mode::Virtual,
                    client_ca: None,
                    api_server: None,
                    destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
                })
            };
            let authority = |name| CertificateAuthority::create(name, DAY).unwrap();
            let (own, other) = (authority("one"), authority("two"));
            let of = |authority: &CertificateAuthority| {
                let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
                ("clients.crt".into(), Watched::fixed(ca))
            };
            let client_cas = ClientCas::default();
            client_cas
                .exchange(HashMap::from([("one".parse().unwrap(), of(&own)), ("two".parse().unwrap(), of(&other))]));
            let clusters = Clusters::new([cluster("one", &["10.2.0.0/16:5432", "db.site:22"]), cluster("two", &[])]);
            Self { clusters, client_cas, authority: own }
        }

        fn ask(&self, cluster: &str, address: &str, chain: &[CertificateDer<'_>]) -> Result<Allowed, ConnectRefusal> {
            let mut request = Request::connect(address).body(()).unwrap();
            request.headers_mut().insert(CLUSTER, cluster.parse().unwrap());
            authorize(&request, address.parse().unwrap(), &self.clusters, &self.client_cas, chain)
        }

        fn certificate(&self, groups: &[&str]) -> Vec<CertificateDer<'static>> {
            let pair = self.authority.issue_client("jane", groups, DAY).unwrap();
            ops::pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap()
        }
    }

    #[test]
    fn a_member_of_the_groups_reaches_the_destinations_of_the_cluster() {
        let world = World::new();
        for group in GROUPS {
            let chain = world.certificate(&["staff", group]);
            for address in ["10.2.9.7:5432", "db.site:22"] {
                let allowed = world.ask("one", address, &chain).unwrap();
                assert_eq!((allowed.user.as_str(), allowed.cluster.name.as_str()), ("jane", "one"));
            }
            for address in ["10.3.0.1:5432", "10.2.9.7:22", "db.site:5432", "other.site:22"] {
                let refused = world.ask("one", address, &chain).unwrap_err();
                assert!(matches!(refused, ConnectRefusal::NotADestination { .. }), "{address}: {refused}");
            }
        }
    }

    #[test]
    fn nobody_else_learns_anything() {
        let world = World::new();
        let (member, other) = (world.certificate(&["system:masters"]), world.certificate(&["staff"]));
        for (cluster, chain) in [
            ("one", &[][..]),
            ("one", &other[..]),
            ("two", &member[..]),
            ("three", &member[..]),
            ("../one", &member[..]),
        ] {
            for address in ["10.2.9.7:5432", "10.3.0.1:5432"] {
                let refused = world.ask(cluster, address, chain).unwrap_err();
                assert!(matches!(refused, ConnectRefusal::Forbidden(_)), "{cluster} {address}: {refused}");
            }
        }
    }
}
