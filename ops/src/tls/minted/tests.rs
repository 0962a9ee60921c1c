use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::pki::CLOCK_SKEW;
use crate::tls::handshake::{DAY, client, handshake};
use crate::tls::{ClientAuth, TlsVersions, server_config};

fn minted(lifetime: Duration) -> MintedCertificates {
    let authority = Authority::create("serving", lifetime).unwrap();
    let names = vec!["proxy.example.com".try_into().unwrap(), "10.1.2.3".try_into().unwrap()];
    MintedCertificates::new(Watched::fixed(authority), "Atoll.internal", names, |name| name == "ke-beijing")
}

#[test]
fn a_client_gets_a_certificate_for_the_requested_name() {
    let minted = minted(365 * DAY);
    let trusting = client(&minted.authority.borrow(), None, TlsVersions::Tls12And13);
    let server = Arc::new(server_config(Arc::new(minted), ClientAuth::None, &[], TlsVersions::Tls13));
    for good in [
        "ke-beijing.atoll.internal",
        "KE-Beijing.Atoll.Internal",
        "proxy.example.com",
        "localhost",
        "10.1.2.3",
        "127.0.0.1",
        "::1",
    ] {
        handshake(&trusting, &server, good).unwrap_or_else(|error| panic!("{good}: {error}"));
    }
    for bad in ["ke-paris.atoll.internal", "a.ke-beijing.atoll.internal", "atoll.internal", "10.1.2.4"] {
        let error = handshake(&trusting, &server, bad).unwrap_err();
        assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{bad}: {error}");
    }
}

#[test]
fn a_certificate_is_made_once_and_renewed_before_it_ends() {
    let minted = minted(365 * DAY);
    let now = SystemTime::now();
    let cluster = || For::Cluster("ke-beijing".into());
    let first = minted.get(cluster(), now).unwrap();
    assert!(Arc::ptr_eq(&first, &minted.get(cluster(), now + SERVER_LIFETIME / 2).unwrap()));
    assert!(!Arc::ptr_eq(&first, &minted.get(cluster(), now + SERVER_LIFETIME * 3 / 4).unwrap()));
    assert!(Arc::ptr_eq(&minted.for_cluster("ke-beijing").unwrap(), &minted.for_cluster("ke-beijing").unwrap()));
}

#[test]
fn a_new_authority_is_used_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("ca.crt"), dir.path().join("ca.key")];
    let put = |authority: &Authority| {
        std::fs::write(&paths[0], authority.certificate_pem()).unwrap();
        std::fs::write(&paths[1], authority.pem().key.expose()).unwrap();
    };
    put(&Authority::create("old", DAY).unwrap());
    let reloader = crate::files::Reloader::new(DAY);
    let watched = reloader.watch(paths.clone(), |[certificate, key]| Authority::from_pem(certificate, key)).unwrap();
    let minted = MintedCertificates::new(watched, "atoll.internal", Vec::new(), |_| true);
    let before = minted.for_listener().unwrap();
    put(&Authority::create("new", DAY).unwrap());
    reloader.reload();
    assert!(!Arc::ptr_eq(&before, &minted.for_listener().unwrap()));
}

#[test]
fn nothing_is_cached_for_unknown_or_removed_clusters() {
    static ALL: AtomicBool = AtomicBool::new(true);
    let authority = Authority::create("serving", DAY).unwrap();
    let known = |name: &str| name == "stays" || name.starts_with("goes") && ALL.load(Ordering::Relaxed);
    let minted = MintedCertificates::new(Watched::fixed(authority), "atoll.internal", Vec::new(), known);
    for name in ["goes-1", "goes-2"] {
        assert!(minted.for_cluster(name).is_some());
    }
    assert!(minted.for_cluster("never").is_none());
    assert_eq!(minted.minted.lock().unwrap().len(), 2);
    ALL.store(false, Ordering::Relaxed);
    assert!(minted.for_cluster("goes-1").is_none());
    assert!(minted.for_cluster("stays").is_some());
    assert_eq!(minted.minted.lock().unwrap().len(), 1);
}

#[test]
fn a_failure_is_not_repeated_with_every_handshake() {
    let minted = minted(Duration::from_secs(60));
    let later = SystemTime::now() + 2 * CLOCK_SKEW;
    assert!(minted.get(For::Listener, later).is_none());
    let renew_at = minted.minted.lock().unwrap()[&For::Listener].renew_at;
    assert_eq!(renew_at, later + RETRY_AFTER);
    assert!(minted.get(For::Listener, later + RETRY_AFTER / 2).is_none());
    assert_eq!(minted.minted.lock().unwrap()[&For::Listener].renew_at, renew_at);
}

#[test]
fn the_cluster_is_read_from_the_host_name() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let authority = Authority::create("serving", DAY).unwrap();
    let minted = MintedCertificates::new(Watched::fixed(authority), "atoll.internal", Vec::new(), move |name| {
        counted.fetch_add(1, Ordering::Relaxed);
        name == "ke-beijing"
    });
    assert_eq!(minted.cluster_of("KE-beijing.atoll.internal").as_deref(), Some("ke-beijing"));
    assert_eq!(minted.cluster_of("ke-beijing.example.com"), None);
    assert_eq!(minted.cluster_of("ke-beijing"), None);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "foreign domains do not even ask");
}
