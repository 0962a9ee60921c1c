//! The virtual clusters that objects on the host declare: what follows the objects, and what the agent observes of the clusters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use dial::routes::{RouteState, Tunnels};
use host_client::api::{Api, Reflector, Selection};
use ops::drain::Tasks;
use protocol::{RefusedClusters, user_certificate};
use tokio::sync::watch;
use virtual_cluster::admission_policies::PolicyState;
use virtual_cluster::clusters::VirtualCluster;
use virtual_cluster::declared::kubeconfigs::{self, KubeconfigStates, Kubeconfigs};
use virtual_cluster::declared::sets::{self, Sets};
use virtual_cluster::declared::{self, Facts, Judged, LastError, Objects, Observe, Reach, Report};
use virtual_cluster::loops;
use virtual_cluster::provisioner::ProvisionState;

use super::exchange::ClusterServices;
use super::kubeconfigs::ProxyServers;
use super::status::{DIRECT_ACCESS, UNVERIFIED, last_errors};
use crate::config::ProxyAgentConfiguration;

/// The objects, and what becomes of them.
pub(super) struct Declarations {
    /// The objects; `None` until the first list is complete.
    pub(super) objects: watch::Receiver<Option<Arc<Objects>>>,
    /// Takes what becomes of them, once it is in force.
    pub(super) judged: watch::Sender<Option<Judged>>,
}

/// Observes the clusters of this agent.
struct Observer {
    services: ClusterServices,
    tunnels: Arc<Tunnels>,
    kubeconfigs: KubeconfigStates,
}

// === impl Declarations ===

impl Declarations {
    /// No objects, because the configuration does not ask for them.
    pub(super) fn none() -> Self {
        Self { objects: watch::Sender::new(Some(Arc::default())).subscribe(), judged: watch::Sender::new(None) }
    }

    /// Starts to follow the objects of the host, and to write their status.
    pub(super) fn follow(
        config: &ProxyAgentConfiguration,
        services: &ClusterServices,
        tunnels: &Arc<Tunnels>,
        issuer: ProxyServers,
        tasks: &Tasks,
    ) -> Self {
        let api = Api::new(services.host.clone());
        let objects = watch::Sender::new(None);
        let declarations = Self { objects: objects.subscribe(), judged: watch::Sender::new(None) };
        let reflector = Reflector::new(&api, declared::PATH, Selection::default());
        tasks.spawn_until_cancelled("virtual clusters", async move { declared::follow(reflector, &objects).await });
        let states = KubeconfigStates::default();
        let observer =
            Observer { services: services.clone(), tunnels: Arc::clone(tunnels), kubeconfigs: states.clone() };
        declarations.store_kubeconfigs(config, services, issuer, states, tasks);
        let all_sets = watch::Sender::new(None);
        let loop_of_sets = Sets::new(api.clone(), services.clusters.all_nodes());
        let run_sets = loops::keep_sets(loop_of_sets, all_sets.subscribe(), declarations.objects.clone());
        tasks.spawn_until_cancelled("virtual cluster sets", run_sets);
        let reflector = Reflector::new(&api, sets::PATH, Selection::default());
        tasks.spawn_until_cancelled("sets", async move { declared::follow(reflector, &all_sets).await });
        let deletion_delay = config.virtual_cluster_deletion_delay.into();
        let report = Report::new(api, observer, deletion_delay).run(declarations.judged.subscribe());
        tasks.spawn_until_cancelled("status of virtual clusters", report);
        declarations
    }

    /// Starts to store the kubeconfigs that the objects ask for.
    fn store_kubeconfigs(
        &self,
        config: &ProxyAgentConfiguration,
        services: &ClusterServices,
        issuer: ProxyServers,
        states: KubeconfigStates,
        tasks: &Tasks,
    ) {
        let api = Api::new(services.host.clone());
        let namespace: Option<Arc<str>> = config.kubeconfig_namespace.as_ref().map(|name| name.as_str().into());
        let secrets = watch::Sender::new(None);
        let found = secrets.subscribe();
        if let Some(namespace) = &namespace {
            let selection = Selection::labelled(kubeconfigs::LABEL);
            let reflector = Reflector::new(&api, kubeconfigs::path(namespace), selection);
            tasks.spawn_until_cancelled("kubeconfigs", async move { declared::follow(reflector, &secrets).await });
        }
        let kubeconfigs = Kubeconfigs::new(api, issuer, namespace, states);
        tasks.spawn_until_cancelled("kubeconfig secrets", kubeconfigs.run(self.judged.subscribe(), found));
    }
}

// === impl Observer ===

impl Observe for Observer {
    fn facts(&self) -> HashMap<String, Facts> {
        let services = &self.services;
        let policies = services.admission_policies.state();
        let namespaces = services.namespaces.index();
        let routes = self.tunnels.all();
        let clusters = services.clusters.all();
        let mut shared = shared_nodes(&clusters);
        let facts = clusters.iter().map(|cluster| {
            let name = cluster.name.as_str().to_owned();
            let facts = Facts {
                provisioned: services.provisioner.provision_state(&cluster.name).unwrap_or(ProvisionState::Pending),
                not_admitted: policies.admits().err().map(str::to_owned),
                weakness: match policies {
                    PolicyState::Open => Some(DIRECT_ACCESS.to_owned()),
                    PolicyState::Unverified => Some(UNVERIFIED.to_owned()),
                    _ => None,
                },
                reach: reach(&name, &routes),
                endpoint: endpoint(&name, &routes),
                node_selector: cluster.node_selector.configured.to_string(),
                node_label_failure: services.node_label_failure.get().filter(|_| cluster.node_selector.is_marked),
                nodes: cluster.count_nodes(),
                namespaces: namespaces.count(&cluster.name),
                shared_with: shared.remove(&name).unwrap_or_default(),
                last_error: last_error(services, cluster),
                kubeconfig: self.kubeconfigs.get(&name),
            };
            (name, facts)
        });
        facts.collect()
    }

    fn is_leaving(&self, cluster: &rewrite::ClusterName) -> bool {
        self.services.provisioner.is_leaving(cluster)
    }
}

fn last_error(services: &ClusterServices, cluster: &VirtualCluster) -> Option<LastError> {
    let newest = last_errors(services, cluster).into_iter().next()?;
    Some(LastError { time: newest.time, code: newest.code, message: newest.message })
}

/// For each cluster, the others that have nodes of it, with the name of one such node.
fn shared_nodes(clusters: &[Arc<VirtualCluster>]) -> HashMap<String, BTreeMap<String, String>> {
    let mut owners: HashMap<Bytes, Vec<&str>> = HashMap::new();
    for cluster in clusters {
        for node in cluster.nodes.names().iter() {
            owners.entry(node.clone()).or_default().push(cluster.name.as_str());
        }
    }
    let mut shared: HashMap<String, BTreeMap<String, String>> = HashMap::new();
    for (node, owners) in owners.iter().filter(|(_, owners)| owners.len() > 1) {
        let node = String::from_utf8_lossy(node);
        for one in owners {
            let others = shared.entry((*one).to_owned()).or_default();
            for other in owners.iter().filter(|other| *other != one) {
                // The first one by name, so that the status does not change all the time.
                let named = others.entry((*other).to_owned()).or_insert_with(|| node.clone().into_owned());
                if *node < **named {
                    *named = node.clone().into_owned();
                }
            }
        }
    }
    shared
}

/// The URL of a cluster, if a proxy-server has sent its domain.
fn endpoint(cluster: &str, routes: &[RouteState]) -> Option<String> {
    let domain = |route: &RouteState| route.tunnel.as_ref().ok()?.acceptance.domain.clone();
    routes.iter().find_map(domain).map(|domain| user_certificate::endpoint(cluster, &domain))
}

/// Whether proxy-servers serve a cluster.
fn reach(cluster: &str, routes: &[RouteState]) -> Reach {
    let (mut is_served, mut refused, mut why) = (false, None, None);
    for route in routes {
        match &route.tunnel {
            Err(reason) => why = Some(Arc::clone(reason)),
            Ok(tunnel) => {
                let verdict = tunnel.verdict.borrow();
                let names = |refused: &&RefusedClusters| refused.clusters.iter().any(|name| name.as_str() == cluster);
                // A proxy-server of protocol 1.0 refuses the whole list.
                let whole = verdict.refusal.as_ref().filter(|_| verdict.refused.is_empty());
                match verdict.refused.iter().find(names).map(|refused| &refused.refusal).or(whole) {
                    Some(refusal) => refused = Some(Arc::from(refusal.to_string())),
                    None => is_served = true,
                }
            }
        }
    }
    match (is_served, refused) {
        (true, refused) => Reach::Served { refused },
        (false, Some(reason)) => Reach::Refused(reason),
        (false, None) => Reach::Nowhere(why.unwrap_or_else(|| "not connected yet".into())),
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Acceptance, ProtocolVersion, Refusal, RefusalReason, Verdict};

    use super::*;

    fn refusing(clusters: &[&str]) -> Verdict {
        let refusal = Refusal::new(RefusalReason::NotGranted, "not granted");
        let clusters = clusters.iter().map(|name| name.parse().unwrap()).collect();
        Verdict { refused: vec![RefusedClusters { clusters, refusal }], ..Verdict::default() }
    }

    #[test]
    fn one_proxy_server_that_serves_a_cluster_is_enough() {
        let tunnels = Arc::new(Tunnels::default());
        let route = || tunnels.route(&"proxy:8091".parse().unwrap(), None);
        let acceptance = || Acceptance { protocol: ProtocolVersion::CURRENT, server: "s".into(), domain: None };
        let (one, other) = (route(), route());
        assert_eq!(reach("a", &tunnels.all()), Reach::Nowhere("not connected yet".into()));
        let one = one.up(acceptance());
        assert_eq!(reach("a", &tunnels.all()), Reach::Served { refused: None });
        one.verdicts().send_replace(refusing(&["a"]));
        assert!(matches!(reach("a", &tunnels.all()), Reach::Refused(reason) if reason.contains("not granted")));
        assert_eq!(reach("b", &tunnels.all()), Reach::Served { refused: None });
        let other = other.up(acceptance());
        assert!(matches!(reach("a", &tunnels.all()), Reach::Served { refused: Some(_) }));
        let refusal = Some(Refusal::new(RefusalReason::Conflict, "another agent"));
        other.verdicts().send_replace(Verdict { refusal, ..Verdict::default() });
        assert!(matches!(reach("b", &tunnels.all()), Reach::Served { refused: Some(_) }));
        assert!(matches!(reach("a", &tunnels.all()), Reach::Refused(_)));
    }
}
