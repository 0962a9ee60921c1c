//! Checks of the configuration that its types cannot express.

use std::collections::HashSet;

use ops::config::{Document, Located, Problems, Unread};
use rewrite::HostNamespace;
use rewrite::request::KeyPattern;

use virtual_cluster::config::{Custom, VirtualCluster};
use virtual_cluster::mistakes;
use virtual_cluster::policy::is_own;
use virtual_cluster::shared::config::{CustomResourceDefinitions, is_within};

use super::{Host, ProxyAgentConfiguration};
use protocol::Destination;
use virtual_cluster::shared::Kind;

impl Document for ProxyAgentConfiguration {
    const KIND: &'static str = "ProxyAgentConfiguration";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }

    fn check(&self, problems: &mut Problems) {
        check(self, problems);
    }
}

fn check(config: &ProxyAgentConfiguration, problems: &mut Problems) {
    if config.servers.is_empty() {
        problems.general("`servers` is empty, so there is no proxy-server to dial");
    }
    if config.virtual_clusters.is_empty() && config.physical_clusters.is_empty() && !config.watch_virtual_clusters {
        problems.general(
            "there are neither virtualClusters nor physicalClusters, and `watchVirtualClusters` is false, so there is nothing \
             to serve",
        );
    }
    if let Some(namespace) = &config.kubeconfig_namespace
        && HostNamespace::new(namespace).is_err()
    {
        problems.at(namespace, format_args!("kubeconfigNamespace: `{}` is not the name of a namespace", **namespace));
    }
    if !config.listeners.admin.is_loopback() {
        problems.at(&config.listeners.admin, "the admin listener has no authentication; it must be on loopback");
    }
    for destination in &config.destinations {
        problems.take(destination, destination.parse::<Destination>());
    }
    let mut customs = HashSet::new();
    for custom in &config.custom_resources {
        if !custom.resource.contains('.') {
            let name = &custom.resource;
            problems.at(custom, format_args!("`{name}` is not the name of a CustomResourceDefinition, plural.group"));
        }
        if is_own(&custom.resource) {
            let name = &custom.resource;
            problems.at(
                custom,
                format_args!("{name} belongs to Atoll, and virtual clusters never see it; remove this entry"),
            );
        }
        if !customs.insert(&custom.resource) {
            problems.at(custom, format_args!("{} is listed twice", custom.resource));
        }
    }
    check_shared(config, problems);
    if let Some(tracing) = &config.tracing {
        request_traces::config::check(tracing, problems);
    }
    for pattern in &config.protected_namespace_keys {
        problems.take(pattern, pattern.parse::<KeyPattern>());
    }
    let mut names = HashSet::new();
    for cluster in &config.virtual_clusters {
        for mistake in mistakes::of(cluster) {
            problems.at(cluster, mistake);
        }
        if !names.insert(&cluster.name) {
            problems.at(cluster, format_args!("cluster {} is listed twice", cluster.name));
        }
    }
    check_endings(&config.virtual_clusters, problems);
    for cluster in &config.physical_clusters {
        if !names.insert(&cluster.name) {
            problems.at(cluster, format_args!("cluster {} is listed twice", cluster.name));
        }
    }
    match &config.host {
        Some(host) => check_host(host, problems),
        None if config.virtual_clusters.is_empty() && !config.watch_virtual_clusters => {}
        None => {
            problems.general("virtual clusters need a `host`: `host: {kubeconfig: FILE}` or `host: {inCluster: true}`");
        }
    }
}

/// Two clusters must not derive the same host name: see [`mistakes::ending`].
fn check_endings(clusters: &[Located<VirtualCluster>], problems: &mut Problems) {
    let names: HashSet<_> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    for cluster in clusters {
        let name = cluster.name.as_str();
        if let Some(ending) = mistakes::ending(name, |other| names.contains(other)) {
            problems.at(
                cluster,
                format_args!(
                    "the name of virtual cluster {name} ends with `-{ending}`, and {ending} is a virtual cluster of this \
                     host too, so namespaces of both could have the same name on the host; rename one of the clusters"
                ),
            );
        }
    }
}

/// Both keys must allow writes of custom resources under their host names.
fn check_shared(config: &ProxyAgentConfiguration, problems: &mut Problems) {
    let writable: HashSet<&str> = config.shared_objects.writable.iter().map(|kind| kind.as_str()).collect();
    let mut shared = HashSet::new();
    for custom in config.custom_resources.iter().filter(|custom| custom.objects == Custom::Shared) {
        let name = &custom.resource;
        shared.insert(name.as_str());
        if !writable.contains(name.as_str()) {
            problems.at(
                custom,
                format_args!(
                    "`objects: shared` lets virtual clusters write {name}: list it in `sharedObjects.writable` too, \
                     or set `objects: read` to let them only read the host's objects"
                ),
            );
        }
    }
    for group in &config.shared_objects.custom_resource_definitions.allowed_groups {
        if is_within(group, CustomResourceDefinitions::OWN_GROUP) {
            problems.at(group, format_args!("`{}` belongs to Atoll and is always reserved", **group));
        }
    }
    for kind in &config.shared_objects.writable {
        if !shared.contains(kind.as_str()) {
            problems.take(kind, kind.parse::<Kind>());
        }
    }
}

fn check_host(host: &Located<Host>, problems: &mut Problems) {
    match (&host.kubeconfig, host.in_cluster) {
        (Some(_), true) => problems.at(host, "`kubeconfig` and `inCluster` exclude each other"),
        (None, false) => problems.at(host, "one of `kubeconfig` and `inCluster: true` is needed"),
        _ => {}
    }
    for server in &host.servers {
        if !server.starts_with("https://") {
            problems.at(server, format_args!("`{server}` is not https://host:port"));
        }
    }
}
