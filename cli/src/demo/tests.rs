use clap::CommandFactory as _;
use clap::Parser as _;

use super::files::Way;
use super::*;

#[derive(clap::Parser)]
#[command(name = "demo")]
struct Line {
    #[command(flatten)]
    args: Args,
}

const HOST: &str = "{current-context: c, contexts: [{name: c, context: {cluster: h, user: u}}], clusters: [{name: h, \
                    cluster: {server: 'https://127.0.0.1:6443'}}], users: [{name: u, user: {token: secret}}]}";

fn prepare(dir: &Path) -> Files {
    let kubeconfig = dir.join("given");
    std::fs::write(&kubeconfig, HOST).unwrap();
    Files::prepare(&dir.join("atoll"), &kubeconfig, Ports::choose(Some(PortBase::From(21000))).unwrap()).unwrap()
}

#[test]
fn without_a_cluster_it_says_what_to_give() {
    let line = Line::try_parse_from(["demo"]).unwrap();
    let error = line.args.check(&mut Line::command()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    for word in ["--kubeconfig FILE", "~/.kube/config", "location=beijing", "Usage"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn what_it_writes_is_what_the_binaries_read() {
    let dir = tempfile::tempdir().unwrap();
    let files = prepare(dir.path());
    let server: proxy_server::ProxyServerConfiguration = load(&files.server_config()).unwrap();
    assert_eq!(server.listeners.proxy.to_string(), "127.0.0.1:21000");
    let agent: proxy_agent::ProxyAgentConfiguration = load(&files.agent_config()).unwrap();
    assert_eq!(agent.offers().len(), server.clusters.len());
    assert!(std::fs::read_to_string(files.host_kubeconfig()).unwrap().contains("secret"));
    for file in [files.host_kubeconfig(), files.kubeconfig(SLICES[0], Way::Proxy)] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_second_start_keeps_the_authorities() {
    let dir = tempfile::tempdir().unwrap();
    let first = prepare(dir.path());
    let copied = std::fs::read_to_string(first.kubeconfig(SLICES[1], Way::Direct)).unwrap();
    let second = prepare(dir.path());
    assert_eq!(first.serving_ca, second.serving_ca);
    let anew = std::fs::read_to_string(second.kubeconfig(SLICES[1], Way::Direct)).unwrap();
    assert_ne!(copied, anew, "certificates are new");
    assert!(anew.contains("https://127.0.0.1:21001/clusters/ke-hangzhou"));
}

#[test]
fn missing_nodes_are_said_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let files = prepare(dir.path());
    let mut out = Vec::new();
    words::ready(&files, &[(SLICES[0], 2), (SLICES[1], 0)], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().any(|line| line == "ready"), "{text}");
    assert!(text.contains("label node NODE location=hangzhou") && !text.contains("label node NODE location=beijing"));
}
