use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    target: TargetArgs,
}

fn target(flags: &[&str]) -> anyhow::Result<Target> {
    Cli::try_parse_from(["x"].iter().chain(flags))?.target.resolve()
}

#[test]
fn a_url_has_host_port_and_path() {
    let one = target(&["--url", "http://localhost:8001/api/v1/nodes?limit=1"]).unwrap();
    assert_eq!(one.own_uri().unwrap(), "/api/v1/nodes?limit=1");
    assert_eq!(one.authority(), "localhost:8001");
    let two = target(&["--url", "http://localhost:8001", "--http", "2"]).unwrap();
    assert_eq!(two.own_uri().unwrap(), "http://localhost:8001/");
    assert_eq!(two.uri("/version").unwrap(), "http://localhost:8001/version");
}

#[test]
fn headers_are_added_and_replaced() {
    let target = target(&["--url", "http://localhost", "--header", "Accept: */*", "--header", "X-A:b"]).unwrap();
    assert_eq!(target.headers["accept"], "*/*");
    assert_eq!(target.headers["x-a"], "b");
}

#[test]
fn invalid_flags_are_refused() {
    for wrong in [
        &[][..],
        &["--url", "/version"],
        &["--url", "ftp://localhost/"],
        &["--url", "https://localhost/"],
        &["--url", "http://localhost", "--kubeconfig", "x"],
        &["--url", "http://localhost", "--http", "3"],
        &["--url", "http://localhost", "--header", "none"],
        &["--url", "http://localhost", "--certificate", "x"],
    ] {
        assert!(target(wrong).is_err(), "{wrong:?}");
    }
}

#[tokio::test]
async fn connections_to_other_machines_are_refused() {
    // An address for documentation (RFC 5737).
    let error = target(&["--url", "http://192.0.2.1:1/"]).unwrap().dial().await.err().unwrap();
    assert!(matches!(error, DialError::Remote(_)), "{error}");
}
