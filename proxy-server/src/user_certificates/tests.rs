use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ops::date::Moment;
use ops::pki::{NewKey, certificates_from_pem};
use ops::tls::{ClientCa, PeerIdentity};
use protocol::Offer;
use protocol::registration::Mode;
use protocol::user_certificate::{ClientAddress, User};

use super::*;
use crate::config::{Revocation, RevocationList};
use crate::grants::testing::parse;
use crate::registry::{Clusters, Registry};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Agent `host-1` has added `site-a`, and `host-2` has added `other-a`. Only `host-1` gets certificates.
fn certificates(dir: &Path, revocations: Revocations) -> UserCertificates {
    let config = parse(
        dir,
        "grants:\n  directory: added\n  kubeconfigs: {through: endpoint, url: 'https://proxy:8443'}\n  agents:\n  \
         - {id: host-1, names: ['site-*'], kubeconfigs: true}\n  - {id: host-2, names: ['other-*']}\n",
    );
    let registry = Arc::new(Registry::new(Clusters::of(&config)));
    for (agent, cluster) in [("host-1", "site-a"), ("host-2", "other-a"), ("host-1", "former")] {
        let store = crate::grants::Store::new(dir.join("added"));
        store.add(&agent.parse().unwrap(), &[cluster.parse().unwrap()], 9).unwrap();
    }
    let grants = Grants::open(&config, &registry).unwrap().unwrap();
    let serving_ca = Watched::fixed(Authority::create("servers", DAY).unwrap());
    UserCertificates { grants, serving_ca, revocations, turns: Arc::new(Semaphore::new(CONCURRENT)) }
}

fn body(cluster: &str, user: &str, groups: &[&str]) -> Vec<u8> {
    let user = User { name: user.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect() };
    let request = NewKey::create().unwrap().request;
    UserCertificateRequest { cluster: cluster.parse().unwrap(), user, request }.encode()
}

fn identity(dir: &Path, cluster: &str, issued: &UserCertificate) -> PeerIdentity {
    let ca = ClientCa::from_pem(&fs::read(dir.join("added").join(cluster).join("client-ca.crt")).unwrap()).unwrap();
    ca.verify(&certificates_from_pem(issued.certificate.as_bytes()).unwrap(), SystemTime::now()).unwrap()
}

/// The certificate of the agent, which is valid for some time.
fn own(lifetime: Duration) -> (CertificateId, SystemTime) {
    (CertificateId::of_user("host-1"), SystemTime::now() + lifetime)
}

fn issue(
    certificates: &UserCertificates,
    agent: &AgentId,
    body: &[u8],
) -> Result<UserCertificate, UserCertificateError> {
    let (certificate, valid_until) = own(30 * DAY);
    certificates.issue(agent, (&certificate, valid_until), body)
}

#[test]
fn an_agent_gets_certificates_for_its_own_clusters() {
    let dir = tempfile::tempdir().unwrap();
    let certificates = certificates(dir.path(), Revocations::default());
    let [one, two]: [AgentId; 2] = ["host-1", "host-2"].map(|id| id.parse().unwrap());
    certificates.allow(&one).unwrap();
    let issued = issue(&certificates, &one, &body("site-a", "jane", &["dev", "system:masters"])).unwrap();
    let address = ClientAddress { server: "https://proxy:8443/clusters/site-a".to_owned(), proxy_url: None };
    assert_eq!(issued.address, address);
    let PeerIdentity { common_name, organizations, valid_until, requester, .. } =
        identity(dir.path(), "site-a", &issued);
    assert_eq!(requester.unwrap().common_name, "host-1");
    assert_eq!((common_name.as_str(), organizations), ("jane", vec!["dev".to_owned(), "system:masters".to_owned()]));
    let rest = valid_until.duration_since(SystemTime::now()).unwrap();
    assert!(rest <= DAY && rest > DAY / 2, "the default lifetime: {rest:?}");

    assert!(matches!(certificates.allow(&two), Err(UserCertificateError::NotGranted(_))));
    for (agent, cluster) in [(&one, "other-a"), (&one, "site-b"), (&one, "former")] {
        let refused = issue(&certificates, agent, &body(cluster, "jane", &[]));
        assert!(matches!(refused, Err(UserCertificateError::NotAdded(..))), "{cluster}: {refused:?}");
    }
    let refused = issue(&certificates, &two, &body("other-a", "jane", &[]));
    assert!(matches!(refused, Err(UserCertificateError::NotGranted(_))));
}

#[test]
fn invalid_requests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let certificates = certificates(dir.path(), Revocations::default());
    let agent: AgentId = "host-1".parse().unwrap();
    let refused = |body: &[u8]| issue(&certificates, &agent, body).unwrap_err();
    assert!(matches!(refused(b"{}"), UserCertificateError::Body));
    assert!(matches!(refused(&body("site-a", "", &[])), UserCertificateError::User(_)));
    let no_key = UserCertificateRequest::decode(&body("site-a", "jane", &[])).unwrap();
    let no_key = UserCertificateRequest { request: "x".to_owned(), ..no_key };
    assert!(matches!(refused(&no_key.encode()), UserCertificateError::Request(_)));
}

/// A certificate begins to be valid some minutes before it is issued, so it could be older than the revocation.
#[test]
fn a_new_certificate_of_a_revoked_user_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let before = SystemTime::UNIX_EPOCH
        + Duration::from_secs(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    let revocation = Revocation {
        cluster: Some("site-a".parse().unwrap()),
        user: Some("jane".to_owned()),
        issued_before: Some(Moment::from(before)),
        ..Revocation::default()
    };
    let revocations = Revocations::fixed(&RevocationList { revoked: vec![revocation.into()] });
    let certificates = certificates(dir.path(), revocations.clone());
    let agent: AgentId = "host-1".parse().unwrap();
    let cluster = "site-a".parse().unwrap();
    for user in ["jane", "john"] {
        let issued = issue(&certificates, &agent, &body("site-a", user, &[])).unwrap();
        let id = CertificateId::from(&identity(dir.path(), "site-a", &issued));
        assert!(!revocations.revokes_user(&cluster, &id), "{user}");
    }
}

#[tokio::test]
async fn a_cluster_that_its_agent_offers_can_have_kubeconfigs() {
    let dir = tempfile::tempdir().unwrap();
    let certificates = certificates(dir.path(), Revocations::default());
    let agent: AgentId = "host-1".parse().unwrap();
    assert!(issue(&certificates, &agent, &body("site-new", "jane", &[])).is_err());
    certificates.grants.admit(&agent, &[Offer::new("site-new".parse().unwrap(), Mode::Virtual)]).await;
    issue(&certificates, &agent, &body("site-new", "jane", &[])).unwrap();
}

#[test]
fn a_revoked_agent_gets_no_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let agent: AgentId = "host-1".parse().unwrap();
    let revocation = Revocation {
        agent: Some(agent.clone()),
        issued_before: Some(Moment::from(SystemTime::now() + DAY)),
        ..Revocation::default()
    };
    let revocations = Revocations::fixed(&RevocationList { revoked: vec![revocation.into()] });
    let certificates = certificates(dir.path(), revocations);
    let refused = issue(&certificates, &agent, &body("site-a", "jane", &[]));
    assert!(matches!(refused, Err(UserCertificateError::Revoked)));
}

/// Then, an operator may remove the revocation of the agent from the list.
#[test]
fn no_certificate_outlives_that_of_its_agent() {
    let dir = tempfile::tempdir().unwrap();
    let certificates = certificates(dir.path(), Revocations::default());
    let (certificate, valid_until) = own(DAY / 2);
    let agent: AgentId = "host-1".parse().unwrap();
    let issued = certificates.issue(&agent, (&certificate, valid_until), &body("site-a", "jane", &[])).unwrap();
    assert!(identity(dir.path(), "site-a", &issued).valid_until <= valid_until);
}

#[test]
fn a_user_who_is_revoked_until_later_gets_no_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let revocation = Revocation {
        cluster: Some("site-a".parse().unwrap()),
        user: Some("jane".to_owned()),
        issued_before: Some(Moment::from(SystemTime::now() + DAY)),
        ..Revocation::default()
    };
    let revocations = Revocations::fixed(&RevocationList { revoked: vec![revocation.into()] });
    let certificates = certificates(dir.path(), revocations);
    let agent: AgentId = "host-1".parse().unwrap();
    let refused = issue(&certificates, &agent, &body("site-a", "jane", &[]));
    assert!(matches!(refused, Err(UserCertificateError::UserRevoked)));
    issue(&certificates, &agent, &body("site-a", "john", &[])).unwrap();
}
