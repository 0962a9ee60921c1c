use super::*;
use crate::pki::Authority;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn chain(authority: &Authority, common_name: &str) -> Vec<CertificateDer<'static>> {
    let pair = authority.issue_client(common_name, &["team"], DAY).unwrap();
    pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap()
}

#[test]
fn a_certificate_of_another_cluster_s_authority_is_refused() {
    // Both have the same name: only their keys differ.
    let (ours, theirs) = (Authority::create("ca", DAY).unwrap(), Authority::create("ca", DAY).unwrap());
    let ca = ClientCa::from_pem(ours.certificate_pem().as_bytes()).unwrap();
    let now = SystemTime::now();
    assert_eq!(ca.verify(&chain(&ours, "jane"), now).unwrap().common_name, "jane");
    assert!(matches!(ca.verify(&chain(&theirs, "jane"), now), Err(ClientCertificateError::Untrusted(_))));
    assert!(matches!(ca.verify(&[], now), Err(ClientCertificateError::Missing)));
    assert!(matches!(
        ca.verify(&[CertificateDer::from(vec![0x30, 0x80])], now),
        Err(ClientCertificateError::Untrusted(_))
    ));
}

/// Before anything is verified: with many intermediates, the search for a path would take seconds.
#[test]
fn a_long_chain_is_refused_at_once() {
    let ours = Authority::create("ca", DAY).unwrap();
    let ca = ClientCa::from_pem(ours.certificate_pem().as_bytes()).unwrap();
    let leaf = chain(&ours, "jane").remove(0);
    let extra = |count: usize, bytes: usize| {
        let more = std::iter::repeat_n(CertificateDer::from(vec![0x30; bytes]), count);
        std::iter::once(leaf.clone()).chain(more).collect::<Vec<_>>()
    };
    let now = SystemTime::now();
    for long in [extra(MAX_CHAIN, 100), extra(1, MAX_CHAIN_BYTES)] {
        assert!(matches!(ca.verify(&long, now), Err(ClientCertificateError::TooLong)));
    }
    assert!(ca.verify(&extra(MAX_CHAIN - 1, 100), now).is_ok(), "webpki ignores what it does not need");
}

#[test]
fn a_server_certificate_does_not_make_a_client() {
    let authority = Authority::create("ca", DAY).unwrap();
    let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
    let server = authority.issue_server(&["localhost".try_into().unwrap()], DAY).unwrap();
    assert!(matches!(ca.verify(&server.cert, SystemTime::now()), Err(ClientCertificateError::Untrusted(_))));
}

#[test]
fn an_authority_is_renewed_by_listing_both() {
    let (old, new) = (Authority::create("old", DAY).unwrap(), Authority::create("new", DAY).unwrap());
    let both = format!("{}{}", old.certificate_pem(), new.certificate_pem());
    let ca = ClientCa::from_pem(both.as_bytes()).unwrap();
    for authority in [old, new] {
        ca.verify(&chain(&authority, "jane"), SystemTime::now()).unwrap();
    }
}

#[test]
fn a_clock_before_1970_refuses_all_certificates() {
    let authority = Authority::create("ca", DAY).unwrap();
    let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH - DAY;
    assert!(ca.verify(&chain(&authority, "jane"), long_ago).is_err());
}

#[test]
fn an_empty_file_is_no_authority() {
    assert!(matches!(ClientCa::from_pem(b""), Err(CaError::Pem(PemError::NoCertificate))));
}
