use std::collections::BTreeMap;

use ops::pki::Authority;

use super::*;

/// A configuration with the files that it names, and free ports.
fn config(dir: &Path) -> (ProxyServerConfiguration, std::path::PathBuf) {
    for name in ["serving", "agents", "clients"] {
        let authority = Authority::create(name, Duration::from_secs(3600)).unwrap();
        std::fs::write(dir.join(format!("{name}.crt")), authority.certificate_pem()).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), authority.pem().key.expose()).unwrap();
    }
    let any = "127.0.0.1:0";
    let text = format!(
        "apiVersion: atoll.dev/v1alpha1
kind: ProxyServerConfiguration
listeners: {{proxy: \"{any}\", endpoint: \"{any}\", agents: \"{any}\", probes: \"{any}\", admin: \"{any}\"}}
servingCA: {{certificate: serving.crt, key: serving.key}}
agentCA: {{certificate: agents.crt}}
clusters:
- {{name: ke-beijing, agents: [site-a], clientCA: {{certificate: clients.crt, key: clients.key}}}}
"
    );
    let file = dir.join("server.yaml");
    std::fs::write(&file, text).unwrap();
    (ops::config::load(&file).unwrap(), file)
}

/// The rows of the table of the proxy-server: name -> labels.
fn documented(page: &str) -> BTreeMap<String, Vec<String>> {
    let section = page.split("\n## ").find(|section| section.starts_with("proxy-server\n")).unwrap();
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")).map(|row| row.split('|').collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells[0].starts_with('`'));
    rows.map(|cells| (quoted(cells[0]).swap_remove(0), quoted(cells[2]))).collect()
}

#[tokio::test]
async fn docs_list_every_metric_with_its_labels() {
    let dir = tempfile::tempdir().unwrap();
    let (config, file) = config(dir.path());
    let app = App::bind(&config, &file).await.unwrap();
    let registered = app.observe.metrics.descriptions().into_iter().filter(|one| one.name.starts_with("atoll_"));
    let registered: BTreeMap<_, _> = registered.map(|one| (one.name, one.labels)).collect();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
    assert_eq!(documented(&page), registered);
}

#[tokio::test]
async fn an_app_that_was_told_to_stop_ends_with_its_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (config, file) = config(dir.path());
    let app = App::bind(&config, &file).await.unwrap();
    let Bound { endpoint, .. } = app.bound;
    let workers = app.workers.clone();
    let drained = app.run(async { drop(TcpStream::connect(endpoint).await.unwrap()) }, pending::<()>()).await;
    assert_eq!(drained, Drained::Clean);
    // What is spawned from now on is dropped.
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    workers.at(0).spawn(&Tasks::new(), "test", async move {
        let _held = held;
        pending::<()>().await;
    });
    assert!(dropped.await.is_err());
}
