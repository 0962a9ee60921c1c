use std::path::Path;

use anyhow::ensure;

use super::files::Route;
use super::host::DevHost;
use super::*;

const GIVEN: &str = "{current-context: c, contexts: [{name: c, context: {cluster: h, user: u}}], clusters: [{name: h, \
                     cluster: {server: 'https://127.0.0.1:6443'}}], users: [{name: u, user: {token: secret}}]}";

async fn given(dir: &Path) -> Host {
    let kubeconfig = dir.join("given");
    std::fs::write(&kubeconfig, GIVEN).unwrap();
    Host::find(Some(&kubeconfig)).await.unwrap()
}

fn prepare(dir: &Path, host: &Host) -> anyhow::Result<Files> {
    Files::prepare(&dir.join("atoll"), &host.accounts(), Ports::choose(Some(PortBase::From(21000)))?)
}

#[tokio::test]
async fn the_binaries_read_the_written_files() {
    let dir = tempfile::tempdir().unwrap();
    let host = given(dir.path()).await;
    let files = prepare(dir.path(), &host).unwrap();
    let server: proxy_server::ProxyServerConfiguration = load(&files.server_config()).unwrap();
    assert_eq!(server.listeners.proxy.to_string(), "127.0.0.1:21000");
    let agent: proxy_agent::ProxyAgentConfiguration = load(&files.agent_config()).unwrap();
    assert_eq!(agent.offers().len(), server.clusters.len());
    assert!(std::fs::read_to_string(files.host_kubeconfig()).unwrap().contains("secret"));
    for file in [files.host_kubeconfig(), files.kubeconfig(CLUSTERS[0], Route::Proxy)] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_second_start_keeps_the_authorities() {
    let dir = tempfile::tempdir().unwrap();
    let host = given(dir.path()).await;
    let first = prepare(dir.path(), &host).unwrap();
    let copied = std::fs::read_to_string(first.kubeconfig(CLUSTERS[1], Route::Direct)).unwrap();
    let authority = first.serving_ca.clone();
    drop(first);
    let second = prepare(dir.path(), &host).unwrap();
    assert_eq!(authority, second.serving_ca);
    let anew = std::fs::read_to_string(second.kubeconfig(CLUSTERS[1], Route::Direct)).unwrap();
    assert_ne!(copied, anew, "certificates are new");
    assert!(anew.contains("https://127.0.0.1:21001/clusters/ke-hangzhou"));
}

#[tokio::test]
async fn missing_nodes_are_reported_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let host = given(dir.path()).await;
    let files = prepare(dir.path(), &host).unwrap();
    let mut out = Vec::new();
    output::ready(&host, &files, &[(CLUSTERS[0], 2), (CLUSTERS[1], 0)], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().any(|line| line == "ready"), "{text}");
    assert!(text.contains("label node NODE location=hangzhou") && !text.contains("label node NODE location=beijing"));
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let host = given(dir.path()).await;
    let first = prepare(dir.path(), &host).unwrap();
    let error = prepare(dir.path(), &host).unwrap_err().to_string();
    assert!(error.contains("another `atoll demo` uses --dir") && error.contains("--port-base 0"), "{error}");
    drop(first);
    prepare(dir.path(), &host).unwrap();
}

/// The administrator can do what the agent cannot.
#[tokio::test]
async fn the_agent_has_the_rights_of_its_role_on_dev_apiserver() {
    async fn check(dev: &DevHost) -> anyhow::Result<()> {
        let (administrator, agent) = (dev.client(&dev.administrator)?, dev.client(&dev.agent)?);
        agent.get("/api/v1/nodes").await?;
        let secret = serde_json::json!({"metadata": {"name": "x"}});
        let refused = agent.create("/api/v1/namespaces/default/secrets", &secret).await.unwrap_err().to_string();
        ensure!(
            refused.contains("403") && refused.contains("system:serviceaccount:atoll-system:proxy-agent"),
            "{refused}"
        );
        administrator.create("/api/v1/namespaces/default/secrets", &secret).await
    }
    let host = Host::find(None).await.unwrap();
    let Host::Dev(dev) = &host else { panic!("there is no kubeconfig") };
    check(dev).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = prepare(dir.path(), &host).unwrap();
    let agent = std::fs::read_to_string(files.agent_config()).unwrap();
    assert!(agent.contains("host: {kubeconfig: agents/demo.kubeconfig, unsafeDirectAccess: true}"), "{agent}");
    assert!(std::fs::read_to_string(files.host_kubeconfig()).unwrap().contains(&dev.address().to_string()));
    host.end(std::future::pending::<()>()).await;
}
