//! `configs/proxy-server.yaml`, which operators copy, says all and only what the proxy-server reads.

#[path = "configs/chart.rs"]
mod chart;
#[path = "configs/keys.rs"]
mod keys;

use std::path::Path;

use ops::config::{Document, parse};
use proxy_server::ProxyServerConfiguration;
use proxy_server::config::Through;

const EXAMPLE: &str = include_str!("../../configs/proxy-server.yaml");

/// README.md cuts the file here.
const CUT: &str = "\n# === Virtual clusters";

fn read(text: &str) -> ProxyServerConfiguration {
    parse(text, Path::new("proxy-server.yaml")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_key_is_there_and_explained() {
    read(EXAMPLE);
    assert_eq!(keys::gaps::<ProxyServerConfiguration>(EXAMPLE), Vec::<String>::new());
}

#[test]
fn a_key_that_is_left_out_or_unexplained_is_found() {
    let gaps = keys::gaps::<ProxyServerConfiguration>;
    let without = |line: &str| {
        assert!(EXAMPLE.contains(line), "{line}");
        EXAMPLE.replace(line, "")
    };
    assert_eq!(gaps(&without("drain: 30s\n")), ["drain is not in the file"]);
    assert_eq!(gaps(&without("  tls: false\n")), ["proxy.tls is not in the file"]);
    assert_eq!(
        gaps(&without("    key: clusters/ke-beijing/client-ca.key\n")),
        ["clusters.clientCA.key is not in the file"]
    );
    for (words, path) in [(" Required, at least one.", "clusters.agents "), ("# Default: atoll.internal.\n", "domain ")]
    {
        let gaps = gaps(&without(words));
        assert!(gaps.len() == 1 && gaps[0].starts_with(path), "{gaps:?}");
    }
}

#[test]
fn the_chart_has_the_same_keys() {
    let differences = chart::differences::<ProxyServerConfiguration>;
    assert_eq!(differences(EXAMPLE, "proxyServerConfig"), Vec::<String>::new());
    // The other half has other keys.
    let others = differences(EXAMPLE, "proxyAgentConfig");
    assert!(others.contains(&"hostNames is missing in values.schema.json".to_owned()), "{others:?}");
    assert!(others.contains(&"virtualClusters is only in values.schema.json".to_owned()), "{others:?}");
    assert!(others.contains(&"values.schema.json does not describe clusters".to_owned()), "{others:?}");
}

#[test]
fn what_is_called_a_default_is_one() {
    let example = read(EXAMPLE);
    let least = read(&format!(
        "apiVersion: {}\nkind: {}\nservingCA: {{certificate: a, key: b}}\nagentCA: {{certificate: c}}\n",
        ops::config::API_VERSION,
        ProxyServerConfiguration::KIND,
    ));
    assert_eq!(least.domain, example.domain);
    assert_eq!(least.drain, example.drain);
    let (ours, theirs) = (&least.listeners, &example.listeners);
    assert_eq!(
        [&ours.proxy, &ours.endpoint, &ours.agents, &ours.probes, &ours.admin],
        [&theirs.proxy, &theirs.endpoint, &theirs.agents, &theirs.probes, &theirs.admin],
    );
    assert_eq!((least.proxy.tls, least.proxy.insecure), (example.proxy.tls, example.proxy.insecure));
    assert!(least.host_names.is_empty() && least.clusters.is_empty() && least.karmada.is_none());
    assert!(least.peers.is_none());
    assert_eq!(example.karmada.map(|karmada| karmada.through), Some(Through::default()));
}

#[test]
fn what_it_says_of_karmada_fits_its_clusters_and_may_be_cut_off() {
    let karmada = read(EXAMPLE).karmada.expect("the example has one");
    assert!(karmada.wants(&"ke-beijing".parse().unwrap()) && karmada.facts(&"ke-beijing".parse().unwrap()).is_some());
    let (without, _) = EXAMPLE.split_once("\n# === Karmada").expect("the line that the file names");
    let config = read(without);
    assert!(config.karmada.is_none() && config.clusters.len() == 3);
}

#[test]
fn what_it_says_of_other_proxy_servers_may_be_cut_off() {
    assert!(read(EXAMPLE).peers.is_some());
    let (without, _) = EXAMPLE.split_once("\n# === Several proxy-servers").expect("the line that the file names");
    let config = read(without);
    assert!(config.peers.is_none() && config.karmada.is_some());
}

#[test]
fn it_stands_without_virtual_clusters() {
    let (physical, _) = EXAMPLE.split_once(CUT).expect("the line that README.md cuts at");
    let config = read(physical);
    assert_eq!(config.clusters.len(), 1);
    assert!(config.clusters[0].api_server.is_some());
}
