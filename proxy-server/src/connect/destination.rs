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
use std::time::{Duration, SystemTime};

use http::Request;
use protocol::Authority;
use protocol::destination::{CLUSTER, GROUP};
use rustls_pki_types::CertificateDer;
use tokio::time::sleep;
use tracing::info;

use super::refusal::ConnectRefusal;
use crate::client_cas::ClientCas;
use crate::config::Cluster;
use crate::registry::{Clusters, Registry};
use crate::revocations::CertificateId;

/// The groups whose members may reach the destinations of a cluster. The first one has its administrators, too.
const GROUPS: [&str; 2] = ["system:masters", GROUP];

/// How often an open connection is checked again, so that it ends with the right to it.
const RECHECK: Duration = Duration::from_secs(5);

/// A destination that a client may reach.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    pub(super) cluster: Arc<Cluster>,
    pub(super) address: Authority,
    /// The common name of the client's certificate.
    pub(super) user: String,
}

/// The cluster that a CONNECT names in [`CLUSTER`].
pub(super) fn cluster_of<B>(request: &Request<B>) -> Option<&str> {
    let mut names = request.headers().get_all(CLUSTER).iter();
    let name = names.next()?.to_str().ok()?;
    names.next().is_none().then_some(name)
}

/// Decides whether a client may reach an address at the site of a cluster. `chain`: the certificates of the client, unverified.
///
/// A client without rights gets the same refusal for every cluster and every address, so it learns nothing about sites.
pub(super) fn authorize(
    cluster: &str,
    address: &Authority,
    clusters: &Clusters,
    client_cas: &ClientCas,
    chain: &[CertificateDer<'_>],
) -> Result<Allowed, ConnectRefusal> {
    let forbidden = || ConnectRefusal::Forbidden(address.clone());
    let cluster = clusters.get(cluster).filter(|cluster| !cluster.destinations.is_empty()).ok_or_else(forbidden)?;
    let ca = client_cas.get(&cluster.name).ok_or_else(forbidden)?;
    let client = ca.borrow().verify(chain, SystemTime::now()).map_err(|_| forbidden())?;
    if client_cas.revocations().revokes_user(&cluster.name, &CertificateId::from(&client)) {
        info!(user = client.common_name, cluster = %cluster.name, "a revoked certificate was refused");
        return Err(forbidden());
    }
    let user = client.common_name;
    if !client.organizations.iter().any(|group| GROUPS.contains(&group.as_str())) {
        info!(user, cluster = %cluster.name, %address, "a user without the group for destinations was refused");
        return Err(forbidden());
    }
    if !cluster.allows(address) {
        info!(user, cluster = %cluster.name, %address, "a user was refused an address that is no destination");
        return Err(ConnectRefusal::NotADestination { cluster: cluster.name.clone(), address: address.clone() });
    }
    Ok(Allowed { cluster: Arc::clone(cluster), address: address.clone(), user })
}

/// Completes when the client may no longer reach the destination: its certificate has expired or is revoked, or the CA or the
/// configuration has changed.
pub(super) async fn revoked(
    allowed: Allowed,
    registry: Arc<Registry>,
    client_cas: Arc<ClientCas>,
    chain: Arc<[CertificateDer<'static>]>,
) {
    let Allowed { cluster, address, .. } = allowed;
    loop {
        sleep(RECHECK).await;
        if authorize(cluster.name.as_str(), &address, &registry.clusters(), &client_cas, &chain).is_err() {
            return;
        }
    }
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
                    oidc: None,
                    api_server: None,
                    destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
                    audit: None,
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
            authorize(cluster, &address.parse().unwrap(), &self.clusters, &self.client_cas, chain)
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
    fn one_line_names_the_cluster() {
        let named = |names: &[&str]| {
            let request =
                names.iter().fold(Request::connect("10.2.9.7:5432"), |request, name| request.header(CLUSTER, *name));
            cluster_of(&request.body(()).unwrap()).map(str::to_owned)
        };
        assert_eq!(named(&["one"]).as_deref(), Some("one"));
        assert_eq!((named(&[]), named(&["one", "two"])), (None, None));
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
