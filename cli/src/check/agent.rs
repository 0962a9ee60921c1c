//! Checks the configuration of a proxy-agent.

use std::sync::Arc;

use host_client::config::Host;
use ops::config::Located;
use ops::drain::Tasks;
use ops::files::Reloader;
use ops::log::chain;
use protocol::AgentId;
use proxy_agent::ProxyAgentConfiguration;
use proxy_agent::config::Identity;
use virtual_cluster::clusters::VirtualClusters;
use virtual_cluster::config::VirtualCluster;
use virtual_cluster::namespaces::Namespaces;

use super::certificate;
use super::report::Report;

/// Checks the files that the configuration names, and its virtual clusters. If `opens_host` is set, it also checks the
/// credential for the host.
pub(super) fn check(config: &ProxyAgentConfiguration, opens_host: bool, report: &mut Report) {
    let identity = &config.identity;
    if config.join.is_some() && !identity.certificate.exists() {
        report.warn(
            &identity.certificate,
            "identity: there is no certificate yet; the agent gets one when it starts with a join token",
        );
    } else {
        check_identity(identity, report);
    }
    if let Some(ca) = config.tracing.as_ref().and_then(|tracing| tracing.server_ca.as_ref()) {
        certificate::server_anchors(report, "tracing.serverCA", ca);
    }
    let namespaces = Arc::new(Namespaces::new([]));
    for cluster in &config.virtual_clusters {
        if let Err(error) = VirtualClusters::new([&**cluster], &namespaces, config.reserved()) {
            report.mistake(cluster, chain(&error));
        }
        trusted_nodes(cluster, report);
    }
    if let Some(host) = &config.host {
        if opens_host {
            open(host, report);
        }
        if host.unverified_policies && !report.includes_weaknesses() {
            report.warn(
                host,
                "host: with unverifiedPolicies, the agent accepts a host even if it cannot verify that the host enforces \
                 the admission policies; if the host does not, anybody who has a token of a virtual cluster and can \
                 connect to the host's API server can leave the virtual cluster",
            );
        }
        if host.unsafe_direct_access && !report.includes_weaknesses() {
            report.warn(
                host,
                "host: with unsafeDirectAccess, the agent accepts a host without admission policies; anybody who has a \
                 token of a virtual cluster and can connect to the host's API server can leave the virtual cluster",
            );
        }
    }
}

/// Checks the certificate and the CA of the proxy-servers.
fn check_identity(identity: &Identity, report: &mut Report) {
    if let Some(name) = certificate::identity(report, "identity", &identity.certificate, &identity.key)
        && let Err(error) = name.parse::<AgentId>()
    {
        let (path, error) = (identity.certificate.display(), chain(&error));
        report.mistake(
            &identity.certificate,
            format_args!(
                "identity: {path} has the common name {name:?}, which is not an agent ID ({error}); run `atoll certs agent ID`"
            ),
        );
    }
    certificate::server_anchors(report, "identity.serverCA", &identity.server_ca);
}

/// Warns if a node can move itself into the virtual cluster.
fn trusted_nodes(cluster: &Located<VirtualCluster>, report: &mut Report) {
    // With `--host`, this is reported as a weakness.
    if !report.includes_weaknesses() && !cluster.selects_all_nodes() && cluster.trusts_nodes() {
        let keys = cluster.selecting_keys().into_iter().collect::<Vec<_>>().join(", ");
        report.warn(
            cluster,
            format_args!(
                "virtual cluster {}: a kubelet may choose the labels that select its nodes ({keys}), so anybody who \
                 controls a node of the host can move it into this virtual cluster and get pods and their Secrets; add \
                 a label with the prefix node-restriction.kubernetes.io/ to the nodes and to nodeSelector",
                cluster.name
            ),
        );
    }
}

/// Reads the kubeconfig and the files that it names, as the agent does when it starts. It does not connect to the host.
fn open(host: &Located<Host>, report: &mut Report) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.mistakes.general(format_args!("host: cannot start a runtime: {error}")),
    };
    let _guard = runtime.enter();
    if let Err(error) = host_client::Host::open(host, &Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new()) {
        let error = chain(&error);
        match &host.kubeconfig {
            Some(kubeconfig) => report.mistake(kubeconfig, format_args!("host: {error}")),
            None => report.mistake(host, format_args!("host: {error}")),
        }
    }
}
