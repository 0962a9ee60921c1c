//! Checks of a configuration that its types cannot express.

use std::collections::{HashMap, HashSet};

use ops::config::{Located, Problems};
use protocol::registration::Mode;
use rustls_pki_types::DnsName;

use super::{Cluster, ProxyServerConfiguration, karmada, limits};

pub(super) fn check(config: &ProxyServerConfiguration, problems: &mut Problems) {
    if DnsName::try_from(config.domain.as_str()).is_err() || config.domain.ends_with('.') {
        problems.at(&config.domain, format_args!("domain `{}` is not a DNS name", config.domain));
    }
    let proxy = &config.listeners.proxy;
    if !proxy.is_loopback() && !config.proxy.tls && !config.proxy.insecure {
        problems.at(
            proxy,
            "the proxy listener is plain HTTP beyond loopback: set `proxy: {tls: true}`, or accept it with \
             `proxy: {insecure: true}`",
        );
    }
    if config.proxy.tls && config.proxy.insecure {
        problems.general("`proxy.tls` and `proxy.insecure` contradict each other");
    }
    if !config.listeners.admin.is_loopback() {
        problems.at(&config.listeners.admin, "the admin listener has no authentication; it must be on loopback");
    }
    for name in &config.host_names {
        if rustls_pki_types::ServerName::try_from(name.as_str()).is_err() {
            problems.at(name, format_args!("`{name}` is neither a DNS name nor an IP address"));
        }
    }
    let mut names = HashSet::new();
    let mut addresses = HashMap::new();
    for cluster in &config.clusters {
        check_cluster(cluster, problems);
        if !names.insert(&cluster.name) {
            problems.at(cluster, format_args!("cluster {} is there twice", cluster.name));
        }
        if let Some(address) = &cluster.api_server
            && let Some(other) = addresses.insert(address, &cluster.name)
        {
            // Two sites often use the same private addresses, so the address must identify one cluster.
            problems.at(
                cluster,
                format_args!(
                    "clusters {other} and {} have the same apiServer {address}: clients could not tell them apart",
                    cluster.name
                ),
            );
        }
    }
    limits::check(&config.limits, problems);
    if let Some(wanted) = &config.karmada {
        karmada::check(wanted, config, problems);
    }
}

fn check_cluster(cluster: &Located<Cluster>, problems: &mut Problems) {
    let name = &cluster.name;
    if cluster.agents.is_empty() {
        problems.at(cluster, format_args!("cluster {name} has no agents, so nobody may serve it"));
    }
    match cluster.mode {
        Mode::Virtual => {
            if cluster.client_ca.is_none() {
                problems.at(
                    cluster,
                    format_args!("virtual cluster {name} needs a clientCA (`atoll certs cluster {name}`)"),
                );
            }
            if cluster.api_server.is_some() {
                problems.at(cluster, format_args!("apiServer is for physical clusters; {name} is virtual"));
            }
        }
        Mode::Physical => {
            if cluster.client_ca.is_some() {
                problems.at(
                    cluster,
                    format_args!("clientCA is for virtual clusters; the API server of {name} checks its own clients"),
                );
            }
            if cluster.api_server.is_none() {
                problems.at(cluster, format_args!("physical cluster {name} needs its apiServer (host:port)"));
            }
        }
    }
}
