use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use clap::Parser;
use ops::tls::{ClientCa, Identity};
use proxy_server::ProxyServerConfiguration;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn certs(arguments: &[&str]) -> anyhow::Result<String> {
    let line = Line::try_parse_from([&["certs"], arguments].concat())?;
    let mut out = Vec::new();
    run(&line.args, &mut out)?;
    Ok(String::from_utf8(out)?)
}

/// The configuration lines that a command printed.
fn lines(printed: &str) -> String {
    printed.split("\n\n").skip(2).collect()
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_printed_lines_make_a_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let certificates = dir.path().join("a: 'directory'");
    let init = certs(&["init", utf8(&certificates)]).unwrap();
    let cluster = certs(&["cluster", "ke-beijing", "--dir", utf8(&certificates)]).unwrap();
    let text = format!(
        "apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\n{}clusters:\n{}",
        lines(&init),
        lines(&cluster).replace("AGENT", "site-a"),
    );
    let config = ops::config::parse::<ProxyServerConfiguration>(&text, Path::new("/elsewhere/config.yaml")).unwrap();
    for path in [
        &config.serving_ca.certificate,
        &config.serving_ca.key,
        &config.agent_ca.certificate,
        &config.clusters[0].client_ca.as_ref().unwrap().certificate,
    ] {
        assert!(path.starts_with(&certificates) && path.is_file(), "{path:?}");
    }
}

#[test]
fn a_cluster_needs_the_directory_of_init() {
    let dir = tempfile::tempdir().unwrap();
    let typing_error = dir.path().join("nonexist");
    let error = certs(&["cluster", "ke-beijing", "--dir", utf8(&typing_error)]).unwrap_err().to_string();
    assert!(error.contains("agent-ca.crt does not exist") && !typing_error.exists(), "{error}");
}

#[test]
fn an_agent_s_certificate_is_accepted_by_the_agent_ca_and_nothing_else_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    certs(&["init", utf8(dir.path())]).unwrap();
    let printed = certs(&["agent", "site-a", "--dir", utf8(dir.path())]).unwrap();
    assert!(
        printed
            .contains("identity: {certificate: agents/site-a.crt, key: agents/site-a.key, serverCA: serving-ca.crt}")
    );

    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let certificate = read("agents/site-a.crt");
    Identity::from_pem(&certificate, &read("agents/site-a.key")).unwrap();
    let chain = ops::pki::certificates_from_pem(&certificate).unwrap();
    let ca = ClientCa::from_pem(&read("agent-ca.crt")).unwrap();
    let peer = ca.verify(&chain, SystemTime::now()).unwrap();
    assert_eq!((peer.common_name.as_str(), peer.organizations.len()), ("site-a", 0));
    assert_eq!(fs::read_dir(dir.path().join("agents")).unwrap().count(), 2);
}

#[test]
fn only_the_owner_can_read_keys() {
    let dir = tempfile::tempdir().unwrap();
    certs(&["init", utf8(dir.path())]).unwrap();
    certs(&["cluster", "a", "--dir", utf8(dir.path())]).unwrap();
    certs(&["agent", "a", "--dir", utf8(dir.path())]).unwrap();
    for (name, mode) in [
        ("serving-ca.key", 0o600),
        ("agent-ca.key", 0o600),
        ("clusters/a/client-ca.key", 0o600),
        ("agents/a.key", 0o600),
        ("serving-ca.crt", 0o644),
    ] {
        assert_eq!(fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn existing_files_are_replaced_only_with_force() {
    let dir = tempfile::tempdir().unwrap();
    certs(&["init", utf8(dir.path())]).unwrap();
    fs::remove_file(dir.path().join("serving-ca.crt")).unwrap();
    let before = fs::read(dir.path().join("serving-ca.key")).unwrap();
    let error = certs(&["init", utf8(dir.path())]).unwrap_err();
    assert!(error.to_string().contains("serving-ca.key already exists"), "{error}");
    assert!(!dir.path().join("serving-ca.crt").exists());
    assert_eq!(fs::read(dir.path().join("serving-ca.key")).unwrap(), before);

    certs(&["init", utf8(dir.path()), "--force"]).unwrap();
    assert_ne!(fs::read(dir.path().join("serving-ca.key")).unwrap(), before);
}

#[test]
fn an_agent_needs_the_agent_ca() {
    let dir = tempfile::tempdir().unwrap();
    let error = certs(&["agent", "site-a", "--dir", utf8(dir.path())]).unwrap_err();
    assert!(format!("{error:#}").contains("atoll certs init"), "{error:#}");
}

#[test]
fn names_that_would_leave_the_directory_are_refused() {
    for name in ["../x", "a/b", "", "A", "a.b"] {
        assert!(certs(&["cluster", name]).is_err(), "{name}");
        assert!(certs(&["agent", name]).is_err(), "{name}");
    }
}
