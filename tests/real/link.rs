//! The network between the two halves.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{BadNetwork, Credentials, Curl, HostCluster, Kubectl, Nodes, Quality, Route, Site, eventually, site};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::case;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The discovery of all groups in one document (KEP-3352).
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The number of ConfigMaps in a list.
const OBJECTS: usize = 300;

/// Both halves notice a dead network within 30 s.
const DEAD: Duration = Duration::from_secs(40);

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    let mut trials = vec![
        case("link::a_slow_network_gets_an_eighth_of_the_bytes", host, a_slow_network_gets_an_eighth_of_the_bytes),
        case("link::a_dead_network_is_noticed", host, a_dead_network_is_noticed),
    ];
    if let Some(megabytes) = thin() {
        trials.push(case("link::a_thin_network_carries_a_list", host, move |host| {
            a_thin_network_carries_a_list(host, megabytes)
        }));
    }
    trials
}

/// Lists and watches are compressed on a network with a long round trip, unless the configuration forbids compression.
/// On a fast network, the configuration can require compression.
fn a_slow_network_gets_an_eighth_of_the_bytes(host: &HostCluster) -> anyhow::Result<()> {
    let (far, near) = (Duration::from_millis(10), Duration::ZERO);
    let mut lists = Vec::new();
    for (cluster, delay, keys, is_compressed) in [
        ("far", far, "", true),
        ("paid", near, "compression: always\n", true),
        ("off", far, "compression: never\n", false),
    ] {
        let name = format!("link-{cluster}");
        let Linked { link, admin, .. } = &Linked::start(host, &name, Quality { delay, rate: None }, keys)?;
        create(host, &name, OBJECTS)?;
        eventually(CONDITION_TIMEOUT, || {
            let count = list(admin)?.1["items"].as_array().map_or(0, Vec::len);
            ensure!(count > OBJECTS, "{count} ConfigMaps");
            Ok(())
        })?;

        ensure!(is_compressed == held(admin, link)?, "{cluster}: documents");
        let before = link.sent();
        let (length, objects) = list(admin)?;
        let sent = link.sent() - before;
        ensure!(is_compressed == (sent * 8 < length), "{cluster}: {sent} bytes for a list of {length}");
        lists.push(names(&objects)?);

        let before = link.sent();
        let length = watch(host, admin, &name, &objects)?;
        let sent = link.sent() - before;
        ensure!(is_compressed == (sent * 8 < length), "{cluster}: {sent} bytes for events of {length}");
    }
    ensure!(lists.windows(2).all(|pair| pair[0] == pair[1]), "the lists differ");
    Ok(())
}

/// The network dies and nobody is told, as when a NAT forgets its mappings. Clients get an error and not silence, and the agent comes
/// back by a new connection.
fn a_dead_network_is_noticed(host: &HostCluster) -> anyhow::Result<()> {
    const CLUSTER: &str = "link-dead";
    let linked = Linked::start(host, CLUSTER, Quality::default(), "")?;
    let admin = &linked.kubectl;
    eventually(CONDITION_TIMEOUT, || admin.ok(&["get", "ns"]))?;
    let mut watch = admin.start(&["get", "--raw", "/api/v1/namespaces?watch=1"])?;
    eventually(CONDITION_TIMEOUT, || {
        let tunnels = linked.site.server.log();
        ensure!(tunnels.contains("agent connected"), "{tunnels}");
        Ok(())
    })?;
    linked.link.lose();
    // Both halves wait for an acknowledgement for 15 s, and began to wait within 15 s.
    eventually(DEAD, || watch.try_wait()?.context("the watch has not ended"))?;
    eventually(CONDITION_TIMEOUT, || admin.ok(&["get", "ns", "--request-timeout=2s"]))?;
    ensure!(linked.site.server.log().contains("no acknowledgement of a PING"), "{}", linked.site.server.log());
    Ok(())
}

/// The long form: a list over 1 Mbit/s, compressed and not. Prints the times.
#[expect(clippy::print_stdout, reason = "docs/performance.md has the figures")]
fn a_thin_network_carries_a_list(host: &HostCluster, megabytes: usize) -> anyhow::Result<()> {
    let quality = Quality { delay: Duration::from_millis(25), rate: Some(125_000) };
    let mut times = Vec::new();
    for (cluster, keys) in [("thin", ""), ("thin-off", "compression: never\n")] {
        let name = format!("link-{cluster}");
        let Linked { link, admin, .. } = &Linked::start(host, &name, quality, keys)?;
        for part in 0..megabytes {
            create_from(host, &name, part * OBJECTS..(part + 1) * OBJECTS)?;
        }
        let (before, began) = (link.sent(), Instant::now());
        let length = admin.clone().with(&["--max-time", "600"]).get(MAPS)?.body.len();
        times.push((length, link.sent() - before, began.elapsed()));
    }
    println!("a list over 1 Mbit/s, compressed and not (length, bytes in the tunnel, time): {times:?}");
    Ok(())
}

/// The size of the list of the long form, in megabytes.
fn thin() -> Option<usize> {
    std::env::var("ATOLL_TEST_THIN").ok()?.parse().ok()
}

/// A site behind a bad network.
struct Linked {
    site: Site,
    link: BadNetwork,
    kubectl: Kubectl,
    admin: Curl,
    _agent: Process,
}

impl Linked {
    fn start(host: &HostCluster, cluster: &str, quality: Quality, keys: &str) -> anyhow::Result<Self> {
        let site = Site::start(&[&site::entry(cluster, "site-a")], &[cluster])?;
        let link = BadNetwork::start(format!("127.0.0.1:{}", site.ports.agents), quality)?;
        let body = format!(
            "{keys}host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
            host.agent_kubeconfig().display(),
            Nodes::Location("hangzhou").entry(cluster)
        );
        let mut agent = site.agent_of(&[link.address()], "site-a", "site-a", &body)?;
        agent.printed("the virtual cluster is provisioned")?;
        let kubectl = site.administrator(cluster)?;
        let Credentials { authority, certificate, key } = Credentials::of(&kubectl)?;
        let admin = Curl::new(Route::Path, cluster, site.ports, &authority).with_certificate(&certificate, &key);
        Ok(Self { site, link, kubectl, admin, _agent: agent })
    }
}

/// Whether documents that have not changed do not cross the network again. They are the same ones.
fn held(admin: &Curl, link: &BadNetwork) -> anyhow::Result<bool> {
    let mut held = Vec::new();
    for (path, accept) in [("/apis", AGGREGATED), ("/apis", "application/json"), ("/openapi/v2", "application/json")] {
        let curl = admin.clone().with(&["--header", &format!("Accept: {accept}")]);
        let first = curl.get(path)?.body;
        let before = link.sent();
        let second = curl.get(path)?.body;
        ensure!(first == second && first.starts_with('{'), "{path}");
        held.push(link.sent() - before < 1500 && first.len() > 3000);
    }
    ensure!(held.windows(2).all(|pair| pair[0] == pair[1]), "{held:?}");
    Ok(held[0])
}

/// A ConfigMap of about 3 KB, as applications have it.
fn object(cluster: &str, number: usize, replicas: usize) -> Value {
    let lines: Vec<_> = (0..40)
        .map(|line| format!("service-{line}.port={}\nservice-{line}.timeout={}s\n", 8000 + line, number % 60 + line))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("settings-{number}"), "namespace": format!("default-{cluster}")},
        "data": {"application.properties": lines.concat(), "replicas": replicas.to_string()},
    })
}

fn create(host: &HostCluster, cluster: &str, count: usize) -> anyhow::Result<()> {
    create_from(host, cluster, 0..count)
}

fn create_from(host: &HostCluster, cluster: &str, numbers: Range<usize>) -> anyhow::Result<()> {
    let items: Vec<_> = numbers.map(|number| object(cluster, number, 0)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    host.kubectl().ok_with(&["create", "-f", "-"], &list.to_string()).map(drop)
}

/// The length of the list in bytes, and the list.
fn list(admin: &Curl) -> anyhow::Result<(u64, Value)> {
    let response = admin.get(MAPS)?;
    Ok((response.body.len() as u64, response.json()?))
}

fn names(list: &Value) -> anyhow::Result<Vec<(String, Value)>> {
    let items = list["items"].as_array().context("no items")?.iter();
    let settings =
        items.filter(|item| item["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("settings-")));
    Ok(settings.map(|item| (item["metadata"]["name"].to_string(), item["data"].clone())).collect())
}

/// Changes objects, and then reads the events with a watch from the version of the list. Returns the length of the watch in bytes.
fn watch(host: &HostCluster, admin: &Curl, cluster: &str, list: &Value) -> anyhow::Result<u64> {
    let version = list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    let changed: Vec<_> = (0..OBJECTS / 3).map(|number| object(cluster, number, 1)).collect();
    let changes = json!({"apiVersion": "v1", "kind": "List", "items": changed});
    host.kubectl().ok_with(&["replace", "-f", "-"], &changes.to_string())?;
    let events = admin.get(&format!("{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=3"))?.body;
    let count = events.lines().filter(|event| event.starts_with(r#"{"type":"MODIFIED""#)).count();
    ensure!(count == changed.len(), "{count} events of {}", changed.len());
    Ok(events.len() as u64)
}
