use std::time::SystemTime;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ClientConnection, HandshakeKind, ProtocolVersion};

use super::*;
use crate::files::Watched;
use crate::pki::Authority;
use crate::tls::ClientCa;
use crate::tls::handshake::{DAY, client, handshake, identity};

fn world() -> (Authority, EndpointTls) {
    let serving = Authority::create("serving", DAY).unwrap();
    let authority =
        Authority::from_pem(serving.certificate_pem().as_bytes(), serving.pem().key.expose().as_bytes()).unwrap();
    let known = |name: &str| ["a", "b"].contains(&name);
    let minted = MintedCertificates::new(Watched::fixed(authority), "atoll.internal", Vec::new(), known);
    (serving, EndpointTls::new(Arc::new(minted)).unwrap())
}

/// A client certificate and its key.
fn pair(clients: &Authority, user: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let pair = clients.issue_client(user, &["team"], DAY).unwrap();
    let chain = crate::pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap();
    (chain, crate::pki::key_from_pem(pair.key.expose().as_bytes()).unwrap())
}

/// A client of one TLS version with the defaults of rustls.
fn trusting(
    serving: &Authority,
    version: &'static rustls::SupportedProtocolVersion,
) -> rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert> {
    trusting_by(rustls::crypto::CryptoProvider::clone(&crate::tls::provider()), serving, version)
}

fn trusting_by(
    provider: rustls::crypto::CryptoProvider,
    serving: &Authority,
    version: &'static rustls::SupportedProtocolVersion,
) -> rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(crate::pki::certificates_from_pem(serving.certificate_pem().as_bytes()).unwrap());
    rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
}

#[test]
fn a_foreign_certificate_passes_the_handshake_and_fails_the_verification() {
    let (serving, endpoint) = world();
    let (ours, theirs) = (Authority::create("ca", DAY).unwrap(), Authority::create("ca", DAY).unwrap());
    let ca = ClientCa::from_pem(ours.certificate_pem().as_bytes()).unwrap();
    let server = endpoint.cluster("a").unwrap().unwrap();
    for (authority, accepted) in [(&ours, true), (&theirs, false)] {
        for versions in [TlsVersions::Tls13, TlsVersions::Tls12And13] {
            let client = client(&serving, Some(identity(authority, "jane", &["g"])), versions);
            let (_, server) = handshake(&client, &server, "a.atoll.internal").unwrap();
            let verified = ca.verify(server.peer_certificates().unwrap(), SystemTime::now());
            assert_eq!(verified.is_ok(), accepted);
        }
    }
    let (_, server) = handshake(&client(&serving, None, TlsVersions::Tls13), &server, "a.atoll.internal").unwrap();
    assert!(server.peer_certificates().is_none());
}

#[test]
fn a_certificate_without_its_key_fails_the_handshake() {
    #[derive(Debug)]
    struct Thief(Arc<CertifiedKey>);
    impl rustls::client::ResolvesClientCert for Thief {
        fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
        fn has_certs(&self) -> bool {
            true
        }
    }

    let (serving, endpoint) = world();
    let clients = Authority::create("clients", DAY).unwrap();
    let certified = |user| {
        let (chain, key) = pair(&clients, user);
        CertifiedKey::from_der(chain, key, &crate::tls::provider()).unwrap()
    };
    let (victim, own) = (certified("jane"), certified("thief"));
    // Even if a chain was just verified, a client must prove that it holds the key.
    let ca = ClientCa::from_pem(clients.certificate_pem().as_bytes()).unwrap();
    ca.verify(&victim.cert, SystemTime::now()).unwrap();
    let stolen = Arc::new(Thief(Arc::new(CertifiedKey::new(victim.cert, own.key))));
    let server = endpoint.cluster("a").unwrap().unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = trusting(&serving, version).with_client_cert_resolver(Arc::clone(&stolen) as _);
        let error = handshake(&Arc::new(client), &server, "a.atoll.internal").unwrap_err();
        assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
    }
}

#[test]
fn a_session_is_resumed_at_its_own_endpoint_only() {
    let (serving, endpoint) = world();
    let clients = Authority::create("clients", DAY).unwrap();
    let (chain, key) = pair(&clients, "jane");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        // Go and rustls keep tickets by default. rustls looks them up by name and by verifier, so one configuration for
        // all connections finds them.
        let client = trusting(&serving, version).with_client_auth_cert(chain.clone(), key.clone_key()).unwrap();
        let client = Arc::new(client);
        let connect = |cluster: &str| {
            let server = endpoint.cluster(cluster).unwrap().unwrap();
            handshake(&client, &server, "a.atoll.internal")
        };
        let kind = |connection: &ClientConnection| connection.handshake_kind();

        let (first, _) = connect("a").unwrap();
        assert_eq!(first.protocol_version(), Some(version.version));
        assert_eq!(kind(&first), Some(HandshakeKind::Full));
        let (second, server) = connect("a").unwrap();
        assert_eq!(kind(&second), Some(HandshakeKind::Resumed));
        assert!(server.peer_certificates().is_some(), "the chain is there to be verified again");
        // The ticket of `a` at `b`: a full handshake, in which the client sees the wrong name.
        let error = connect("b").unwrap_err();
        assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
    }
}

#[test]
fn protocols_and_versions_are_those_of_an_api_server() {
    let (serving, endpoint) = world();
    let server = endpoint.cluster("a").unwrap().unwrap();
    let negotiate = |alpn: &[&[u8]]| {
        let mut config = Arc::unwrap_or_clone(client(&serving, None, TlsVersions::Tls12And13));
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        let (client, _) = handshake(&Arc::new(config), &server, "a.atoll.internal").unwrap();
        (client.alpn_protocol().map(<[u8]>::to_vec), client.protocol_version().unwrap())
    };
    assert_eq!(negotiate(&[ALPN_HTTP1, ALPN_H2]), (Some(ALPN_H2.to_vec()), ProtocolVersion::TLSv1_3));
    assert_eq!(negotiate(&[ALPN_HTTP1]).0.as_deref(), Some(ALPN_HTTP1));
    assert_eq!(negotiate(&[]).0, None);
}

#[test]
fn the_client_chooses_the_cipher_and_ours_choose_the_fastest() {
    let (serving, endpoint) = world();
    let server = endpoint.cluster("a").unwrap().unwrap();
    let cipher = |config: Arc<rustls::ClientConfig>| {
        let (client, _) = handshake(&config, &server, "a.atoll.internal").unwrap();
        client.negotiated_cipher_suite().unwrap().suite()
    };
    let ours = |versions| client(&serving, None, versions);
    assert_eq!(cipher(ours(TlsVersions::Tls13)), CipherSuite::TLS13_AES_128_GCM_SHA256);
    assert_eq!(cipher(ours(TlsVersions::Tls12And13)), CipherSuite::TLS13_AES_128_GCM_SHA256);
    let old = Arc::new(trusting(&serving, &rustls::version::TLS12).with_no_client_auth());
    assert_eq!(cipher(old), CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    let mut slow = rustls::crypto::CryptoProvider::clone(&crate::tls::provider());
    slow.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let slow = Arc::new(trusting_by(slow, &serving, &rustls::version::TLS13).with_no_client_auth());
    assert_eq!(cipher(slow), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
}

#[test]
fn a_direct_connection_names_its_cluster_by_sni_or_not_at_all() {
    let (_, endpoint) = world();
    let (cluster, config) = endpoint.direct(Some("B.atoll.internal")).unwrap();
    assert_eq!(cluster.as_deref(), Some("b"));
    assert!(Arc::ptr_eq(&config, &endpoint.cluster("b").unwrap().unwrap()));
    for name in [None, Some("c.atoll.internal"), Some("localhost")] {
        let (cluster, config) = endpoint.direct(name).unwrap();
        assert_eq!(cluster, None);
        assert!(Arc::ptr_eq(&config, &endpoint.listener));
    }
    assert!(endpoint.cluster("c").unwrap().is_none());
}
