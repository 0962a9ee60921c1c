//! `configs/proxy-agent.yaml`, which operators copy, says all and only what the proxy-agent reads, and fits its
//! counterpart.

// One description of what an example must be, for both halves.
#[path = "../../proxy-server/tests/configs/chart.rs"]
mod chart;
#[path = "../../proxy-server/tests/configs/keys.rs"]
mod keys;

use std::path::Path;

use ops::config::{Document, Problems, Unread, parse};
use proxy_agent::ProxyAgentConfiguration;
use serde::Deserialize;
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../configs/proxy-agent.yaml");
const COUNTERPART: &str = include_str!("../../configs/proxy-server.yaml");

/// The file says that it can be cut here.
const CUT: &str = "\n# === Virtual clusters";

/// The type is the proxy-server's own; only the kind is needed here.
#[derive(Deserialize)]
struct Server {}

impl Document for Server {
    const KIND: &'static str = "ProxyServerConfiguration";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }
}

fn read(text: &str) -> ProxyAgentConfiguration {
    parse(text, Path::new("proxy-agent.yaml")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_key_is_there_and_explained() {
    read(EXAMPLE);
    assert_eq!(keys::gaps::<ProxyAgentConfiguration>(EXAMPLE), Vec::<String>::new());
}

#[test]
fn the_chart_has_the_same_keys() {
    let differences = chart::differences::<ProxyAgentConfiguration>(EXAMPLE, "proxyAgentConfig");
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn documented_defaults_are_the_defaults() {
    let example = read(EXAMPLE);
    let least = read(&format!(
        "apiVersion: {}\nkind: {}\nservers: [a:1]\nidentity: {{certificate: a, key: b, serverCA: c}}\n\
         physicalClusters: [{{name: a, apiServer: \"a:1\"}}]\n",
        ops::config::API_VERSION,
        ProxyAgentConfiguration::KIND,
    ));
    assert_eq!(least.drain, example.drain);
    assert_eq!(
        [&least.listeners.probes, &least.listeners.admin],
        [&example.listeners.probes, &example.listeners.admin],
    );
    assert_eq!(least.destinations, example.destinations);
    assert_eq!(least.shared_objects, example.shared_objects);
    let host = example.host.expect("the example has one");
    assert!(!host.in_cluster && host.servers.is_empty() && !host.unsafe_direct_access && !host.unverified_policies);
    assert!(least.host.is_none() && least.virtual_clusters.is_empty());
}

#[test]
fn it_stands_without_virtual_clusters() {
    let (physical, _) = EXAMPLE.split_once(CUT).expect("the line to cut at");
    let config = read(physical);
    assert_eq!((config.physical_clusters.len(), config.virtual_clusters.len()), (1, 0));
}

#[test]
fn the_proxy_server_of_the_examples_takes_this_agent() {
    let (agent, server) = (read(EXAMPLE), keys::plain::<Server>(COUNTERPART));
    let id = agent.identity.certificate.file_stem().and_then(|stem| stem.to_str()).expect("agents/ID.crt");
    let clusters = server["clusters"].as_array().expect("a list");
    let offers = agent.offers();
    assert_eq!(offers.len(), clusters.len());
    for offer in offers {
        let cluster = clusters.iter().find(|cluster| cluster["name"] == offer.name.as_str());
        let cluster = cluster.unwrap_or_else(|| panic!("no {} at the proxy-server", offer.name));
        assert_eq!(cluster.get("mode").unwrap_or(&json!("virtual")), &json!(offer.mode));
        assert!(cluster["agents"].as_array().expect("a list").contains(&id.into()), "{cluster}");
    }

    let port = agent.servers[0].port();
    assert!(server["listeners"]["agents"].as_str().is_some_and(|listen| listen.ends_with(&format!(":{port}"))));
    let names = server["hostNames"].as_array().expect("a list");
    assert!(names.contains(&Value::from(agent.servers[0].host())));
}
