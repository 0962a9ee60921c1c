//! Checks the configuration of a proxy-server.

use std::collections::HashMap;

use ops::config::Located;
use ops::files::Reloader;
use ops::log::chain;
use protocol::{AgentId, Authority};
use proxy_server::ProxyServerConfiguration;
use proxy_server::config::{Cluster, Peers, RevocationList};

use super::certificate::{self, Anchors};
use super::report::Report;

/// Checks the files that the configuration names.
pub(super) fn check(config: &ProxyServerConfiguration, report: &mut Report) {
    certificate::authority(report, "servingCA", &config.serving_ca.certificate, &config.serving_ca.key);
    let serving = certificate::server_anchors(report, "servingCA", &config.serving_ca.certificate);
    let agents = certificate::client_anchors(report, "agentCA", &config.agent_ca.certificate);
    if let Some(key) = &config.agent_ca.key {
        certificate::authority(report, "agentCA", &config.agent_ca.certificate, key);
    }
    let mut anchors: Vec<Anchors<'_>> = serving.into_iter().chain(agents).collect();
    for cluster in &config.clusters {
        let Some(ca) = &cluster.client_ca else { continue };
        let purpose = format!("clientCA of cluster {}", cluster.name);
        anchors.extend(certificate::client_anchors(report, &purpose, &ca.certificate));
        match &ca.key {
            // Only `atoll kubeconfig` needs the key, so it can be elsewhere.
            Some(key) if !key.exists() => {
                let path = key.display();
                report.warn(
                    key,
                    format_args!(
                        "{purpose}: {path} does not exist, so `atoll kubeconfig` cannot issue certificates with this file"
                    ),
                );
            }
            Some(key) => certificate::authority(report, &purpose, &ca.certificate, key),
            None => {}
        }
    }
    distinct(&anchors, report);
    if let Some(path) = &config.revocations
        && let Err(errors) = ops::config::load::<RevocationList>(path)
    {
        report.mistake(path, format_args!("revocations: {}", chain(&errors)));
    }
    check_audit(config, report);
    warn_of_equal_addresses(config, report);
    if let Some(peers) = &config.peers {
        check_peers(config, peers, report);
    }
    if let Some(ca) = config.tracing.as_ref().and_then(|tracing| tracing.server_ca.as_ref()) {
        certificate::server_anchors(report, "tracing.serverCA", ca);
    }
    if let Some(karmada) = &config.karmada {
        let path = &karmada.kubeconfig;
        if let Err(error) = proxy_server::karmada::check(path.to_path_buf(), &Reloader::new(Reloader::DEFAULT_PERIOD)) {
            let error = anyhow::Error::from(error);
            report.mistake(path, format_args!("karmada.kubeconfig: {error:#}"));
        }
    }
}

/// Reports policies and kubeconfigs of audit logs that cannot be used.
fn check_audit(config: &ProxyServerConfiguration, report: &mut Report) {
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let of_clusters = config.clusters.iter().filter_map(|cluster| cluster.audit.as_ref());
    for audit in config.audit.iter().chain(of_clusters) {
        if let Err(error) = proxy_server::config::check_audit(audit, &reloader) {
            report.mistake(audit, format_args!("{}", chain(&error)));
        }
    }
}

/// Several physical clusters may have the same address, but then clients can no longer use it.
fn warn_of_equal_addresses(config: &ProxyServerConfiguration, report: &mut Report) {
    let mut first: HashMap<&Authority, &Located<Cluster>> = HashMap::new();
    for cluster in &config.clusters {
        let Some(address) = &cluster.api_server else { continue };
        if let Some(other) = first.get(address) {
            let (name, other, domain) = (&cluster.name, &other.name, &config.domain);
            report.warn(
                cluster,
                format_args!(
                    "cluster {name} has the apiServer {address} of cluster {other}, so clients can reach them only as \
                     {name}.{domain} and {other}.{domain} (`atoll kubeconfig --physical-from` writes this)"
                ),
            );
        } else {
            first.insert(address, cluster);
        }
    }
}

/// Reports an identity of proxy-servers that an agent may also have: that agent could serve any cluster.
fn check_peers(config: &ProxyServerConfiguration, peers: &Peers, report: &mut Report) {
    let identity = &peers.identity;
    let Some(name) = certificate::identity(report, "peers.identity", &identity.certificate, &identity.key) else {
        return;
    };
    if let Err(error) = name.parse::<AgentId>() {
        let path = identity.certificate.display();
        report.mistake(
            &identity.certificate,
            format_args!(
                "peers.identity: {path} has the common name {name:?}, which is not valid ({}); run `atoll certs agent \
                 proxy-servers`",
                chain(&error)
            ),
        );
    }
    let is_agent = |cluster: &&Located<Cluster>| cluster.agents.iter().any(|agent| agent.as_str() == name);
    if let Some(cluster) = config.clusters.iter().find(is_agent) {
        report.mistake(
            cluster,
            format_args!(
                "peers.identity: agent {name} of cluster {} has the same common name, so it could serve any cluster; run \
                 `atoll certs agent proxy-servers`, and use that certificate for `peers`",
                cluster.name
            ),
        );
    }
}

/// Reports CAs that have two purposes. With such a CA, a user of one cluster would be a user of another cluster, or an
/// agent would be a user.
fn distinct(anchors: &[Anchors<'_>], report: &mut Report) {
    for (index, one) in anchors.iter().enumerate() {
        let same = |other: &&Anchors<'_>| one.public_keys.iter().any(|key| other.public_keys.contains(key));
        if let Some(other) = anchors[..index].iter().find(same) {
            let (ours, theirs) = (&one.purpose, &other.purpose);
            report.mistake(
                one.at,
                format_args!(
                    "{ours} is the same CA as {theirs}, so its certificates are valid for both; create a separate CA"
                ),
            );
        }
    }
}
