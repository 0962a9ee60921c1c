use super::*;
use crate::pki::Authority;
use crate::tls::handshake::{DAY, client, handshake, identity};
use crate::tls::{ALPN_HTTP1, Identity, MintedCertificates};

fn listener(serving: Authority, agent_ca: Watched<ClientCa>) -> Arc<ServerConfig> {
    let minted = MintedCertificates::new(Watched::fixed(serving), "atoll.internal", Vec::new(), |_| false);
    Arc::new(agent_listener_config(Arc::new(minted), agent_ca, false, &[ALPN_HTTP1]))
}

fn ca(authority: &Authority) -> ClientCa {
    ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap()
}

#[test]
fn agents_need_a_certificate_of_the_agent_ca() {
    let serving = Authority::create("serving", DAY).unwrap();
    let (agents, others) = (Authority::create("agents", DAY).unwrap(), Authority::create("agents", DAY).unwrap());
    let connect = |identity: Option<Identity>, versions| {
        let client = client(&serving, identity, versions);
        let serving =
            Authority::from_pem(serving.certificate_pem().as_bytes(), serving.pem().key.expose().as_bytes()).unwrap();
        handshake(&client, &listener(serving, Watched::fixed(ca(&agents))), "localhost")
    };
    let (_, server) = connect(Some(identity(&agents, "site-a", &[])), TlsVersions::Tls13).unwrap();
    let peer = ca(&agents).verify(server.peer_certificates().unwrap(), std::time::SystemTime::now()).unwrap();
    assert_eq!(peer.common_name, "site-a");

    assert!(connect(None, TlsVersions::Tls13).is_err());
    assert!(connect(Some(identity(&others, "site-a", &[])), TlsVersions::Tls13).is_err());
}

#[test]
fn agents_cannot_use_tls_1_2() {
    let serving = Authority::create("serving", DAY).unwrap();
    let agents = Authority::create("agents", DAY).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(crate::pki::certificates_from_pem(serving.certificate_pem().as_bytes()).unwrap());
    let old = rustls::ClientConfig::builder_with_provider(crate::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let error = handshake(&Arc::new(old), &listener(serving, Watched::fixed(ca(&agents))), "localhost").unwrap_err();
    assert!(matches!(error, rustls::Error::PeerIncompatible(_)), "{error}");
}

#[test]
fn a_reloaded_agent_ca_is_used_from_the_next_handshake_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent-ca.crt");
    let (old, new) = (Authority::create("agents", DAY).unwrap(), Authority::create("agents", DAY).unwrap());
    std::fs::write(&path, old.certificate_pem()).unwrap();
    let reloader = crate::files::Reloader::new(DAY);
    let watched = reloader.watch([path.clone()], |[pem]| ClientCa::from_pem(pem)).unwrap();
    let serving = Authority::create("serving", DAY).unwrap();
    let client = |agents| client(&serving, Some(identity(agents, "site-a", &[])), TlsVersions::Tls13);
    let (of_old, of_new) = (client(&old), client(&new));
    let server = listener(serving, watched);

    assert!(handshake(&of_old, &server, "localhost").is_ok());
    assert!(handshake(&of_new, &server, "localhost").is_err());
    std::fs::write(&path, new.certificate_pem()).unwrap();
    reloader.reload();
    assert!(handshake(&of_old, &server, "localhost").is_err());
    assert!(handshake(&of_new, &server, "localhost").is_ok());
}
