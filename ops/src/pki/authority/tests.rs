use super::*;
use crate::pki::OID_UID;
use crate::tls::{ClientCa, ClientCertificateError, ServerCa};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn authority() -> Authority {
    Authority::create("test CA", 10 * DAY).unwrap()
}

fn client_ca(authority: &Authority) -> ClientCa {
    ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap()
}

fn parse(der: &CertificateDer<'_>, check: impl FnOnce(X509Certificate<'_>)) {
    let (rest, certificate) = X509Certificate::from_der(der).unwrap();
    assert!(rest.is_empty());
    check(certificate);
}

fn chain(pair: &PemPair) -> Vec<CertificateDer<'static>> {
    pem::certificates_from_pem(pair.certificate.as_bytes()).unwrap()
}

#[test]
fn an_authority_signs_leaves_and_nothing_else() {
    parse(&chain(authority().pem())[0], |certificate| {
        let constraints = certificate.basic_constraints().unwrap().unwrap();
        assert!(constraints.critical && constraints.value.ca);
        assert_eq!(constraints.value.path_len_constraint, Some(0));
        let usage = certificate.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.key_cert_sign());
    });
}

#[test]
fn a_client_s_organisations_keep_their_order() {
    let authority = authority();
    let groups = ["system:masters", "a,b", "", "團隊"];
    let pair = authority.issue_client("jane=doe", &groups, DAY).unwrap();
    let peer = client_ca(&authority).verify(&chain(&pair), SystemTime::now()).unwrap();
    assert_eq!(peer.common_name, "jane=doe");
    assert_eq!(peer.organizations, groups);
    assert_eq!(peer.uid, None);
    assert_eq!(peer.chain, chain(&pair));
}

#[test]
fn leaves_have_their_usage_a_long_random_serial_and_the_key_identifier() {
    let authority = authority();
    let server = authority.issue_server(&["localhost".try_into().unwrap()], DAY).unwrap();
    let pair = authority.issue_client("jane", &["a"], DAY).unwrap();
    parse(&server.cert[0], |server| {
        let usage = server.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth);
        parse(&chain(&pair)[0], |client| {
            let usage = client.extended_key_usage().unwrap().unwrap().value;
            assert!(usage.client_auth && !usage.server_auth);
            assert!(!client.is_ca());
            assert_eq!(client.raw_serial().len(), 16);
            assert_ne!(client.raw_serial(), server.raw_serial());
            parse(&chain(authority.pem())[0], |ca| {
                let subject = ca.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                    ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0),
                    _ => None,
                });
                let issuer = client.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                    ParsedExtension::AuthorityKeyIdentifier(identifier) => {
                        identifier.key_identifier.as_ref().map(|identifier| identifier.0)
                    }
                    _ => None,
                });
                assert!(subject.is_some());
                assert_eq!(subject, issuer);
            });
        });
    });
}

#[test]
fn certificates_are_valid_five_minutes_ago_and_never_longer_than_their_authority() {
    let authority = authority();
    let ca = client_ca(&authority);
    let pair = authority.issue_client("jane", &["a"], 100 * DAY).unwrap();
    let now = SystemTime::now();
    let at = |time| ca.verify(&chain(&pair), time);
    assert!(at(now - CLOCK_SKEW + Duration::from_secs(30)).is_ok());
    assert!(matches!(at(now - CLOCK_SKEW - Duration::from_secs(30)), Err(ClientCertificateError::Untrusted(_))));
    assert_eq!(at(now).unwrap().valid_until, authority.not_after());
    assert!(matches!(at(authority.not_after() + DAY), Err(ClientCertificateError::Untrusted(_))));
    assert!(matches!(authority.leaf_not_after(authority.not_after(), DAY), Err(IssueError::AuthorityExpired)));
}

#[test]
fn lifetimes_have_limits() {
    for lifetime in [Duration::ZERO, MAX_LIFETIME + DAY, Duration::MAX] {
        assert!(matches!(Authority::create("x", lifetime), Err(IssueError::Lifetime)));
        assert!(matches!(authority().issue_client("x", &["a"], lifetime), Err(IssueError::Lifetime)));
    }
    Authority::create("x", MAX_LIFETIME).unwrap();
}

#[test]
fn an_authority_can_be_read_from_its_files() {
    let made = authority();
    let read = Authority::from_pem(made.certificate_pem().as_bytes(), made.pem().key.expose().as_bytes()).unwrap();
    assert_eq!(read.not_after(), made.not_after());
    let pair = read.issue_client("jane", &["a"], DAY).unwrap();
    client_ca(&made).verify(&chain(&pair), SystemTime::now()).unwrap();
}

#[test]
fn a_key_of_another_certificate_and_a_leaf_are_refused() {
    let (one, other) = (authority(), authority());
    let read = |certificates: &str, key: &PemPair| {
        Authority::from_pem(certificates.as_bytes(), key.key.expose().as_bytes()).unwrap_err()
    };
    assert!(matches!(read(one.certificate_pem(), other.pem()), AuthorityError::KeyMismatch));
    let leaf = one.issue_client("jane", &["a"], DAY).unwrap();
    assert!(matches!(read(&leaf.certificate, &leaf), AuthorityError::NotAnAuthority));
    assert!(matches!(read("", one.pem()), AuthorityError::Pem(PemError::NoCertificate)));
}

#[test]
fn an_intermediate_authority_is_sent_to_clients() {
    // Names that rcgen itself would write differently: two organisations, and an attribute that it does not know.
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_pem = root.self_signed(&root_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root = Issuer::new(root, root_key);
    let plain = params.signed_by(&key, &root).unwrap();
    let subject = Name::default()
        .with(ORGANIZATION, "one")
        .with(ORGANIZATION, "two")
        .with(OID_UID, "u")
        .with(COMMON_NAME, "middle")
        .to_der();
    let issuer = Name::default().with(COMMON_NAME, "rcgen self signed cert").to_der();
    let middle = name::rename_and_sign(plain.der(), &issuer, &subject, root.key()).unwrap();

    let bundle = format!("{root_pem}{}", pem::certificate_to_pem(&middle));
    let authority = Authority::from_pem(bundle.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let client = authority.issue_client("jane", &["a"], DAY).unwrap();
    assert_eq!(chain(&client).len(), 2);
    let trust_root_only = ClientCa::from_pem(root_pem.as_bytes()).unwrap();
    trust_root_only.verify(&chain(&client), SystemTime::now()).unwrap();
    assert_eq!(authority.issue_server(&["localhost".try_into().unwrap()], DAY).unwrap().cert.len(), 2);
}

#[test]
fn a_server_certificate_needs_names() {
    assert!(matches!(authority().issue_server(&[], DAY), Err(IssueError::Names)));
}

#[test]
fn an_authority_s_files_also_make_a_server_ca() {
    ServerCa::from_pem(authority().certificate_pem().as_bytes()).unwrap();
}

#[test]
fn subjects_without_a_name_or_with_several_uids_are_refused() {
    let authority = authority();
    let ca = client_ca(&authority);
    let verify = |name: Name| {
        let pair = authority.issue_client_named(&name, DAY, SystemTime::now(), SystemTime::UNIX_EPOCH).unwrap();
        ca.verify(&chain(&pair), SystemTime::now())
    };
    let jane = || Name::default().with(COMMON_NAME, "jane");
    assert_eq!(verify(jane().with(OID_UID, "42")).unwrap().uid.as_deref(), Some("42"));
    assert_eq!(verify(jane().with(COMMON_NAME, "joe")).unwrap().common_name, "joe");
    for bad in [
        Name::default().with(ORGANIZATION, "a"),
        Name::default().with(COMMON_NAME, ""),
        jane().with(OID_UID, ""),
        jane().with(OID_UID, "1").with(OID_UID, "2"),
    ] {
        assert!(matches!(verify(bad), Err(ClientCertificateError::Unreadable(_))));
    }
}
