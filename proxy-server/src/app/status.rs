//! The state of the process: collects the figures of [`ServerStatus`].

use std::collections::HashMap;
use std::sync::Arc;

use ops::config::API_VERSION;
use ops::date::Moment;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::pki::{Authority, Validity};
use ops::tls::{ClientCa, Identity};
use protocol::AgentId;
use request_metrics::RequestMetrics;

use super::files::Files;
use crate::client_cas::ClientCas;
use crate::enrolment::shown::ShownTokens;
use crate::enrolment::tokens::Token;
use crate::karmada::Memberships;
use crate::limits::Limits;
use crate::links::{Links, Traffic};
use crate::registry::Registry;
use crate::revocations::InForce;
use crate::status::{
    CertificateStatus, ClusterStatus, KIND, LinkStatus, RefusedOfferStatus, RevocationsStatus, ServerStatus,
    TokenStatus, TunnelStatus,
};

/// The maximum length in characters. An agent states its version and instance, and nothing else checks them.
const MAX_TEXT: usize = 64;
/// The maximum number of refused clusters of one agent. An agent can offer two thousand names.
const MAX_REFUSED: usize = 100;

/// The sources of the figures.
pub(super) struct StatusSource {
    registry: Arc<Registry>,
    serving_ca: Watched<Authority>,
    agent_ca: Watched<ClientCa>,
    client_cas: Arc<ClientCas>,
    memberships: Memberships,
    limits: Arc<Limits>,
    requests: Arc<RequestMetrics>,
    links: Arc<Links>,
    peer_identity: Option<Watched<Identity>>,
    tokens: ShownTokens,
}

// === impl StatusSource ===

impl StatusSource {
    pub(super) fn new(
        registry: &Arc<Registry>,
        files: &Files,
        memberships: Memberships,
        (limits, requests, links): (&Arc<Limits>, &Arc<RequestMetrics>, &Arc<Links>),
        tasks: &Tasks,
    ) -> Self {
        let tokens = ShownTokens::default();
        if let Some(enrolment) = &files.enrolment {
            tasks.spawn_until_cancelled("tokens", tokens.clone().keep(enrolment.tokens.clone()));
        }
        Self {
            registry: Arc::clone(registry),
            serving_ca: files.serving_ca.clone(),
            agent_ca: files.agent_ca.clone(),
            client_cas: Arc::clone(&files.client_cas),
            memberships,
            limits: Arc::clone(limits),
            requests: Arc::clone(requests),
            links: Arc::clone(links),
            peer_identity: None,
            tokens,
        }
    }

    /// Also reports the certificate for other proxy-servers.
    pub(super) fn with_peer_identity(self, identity: Option<Watched<Identity>>) -> Self {
        Self { peer_identity: identity, ..self }
    }

    /// The current state.
    pub(super) fn status(&self) -> ServerStatus {
        let mut served: HashMap<*const crate::tunnel::Tunnel, Vec<String>> = HashMap::new();
        let mut clusters = Vec::new();
        let interruptions = self.registry.interruptions();
        for cluster in self.registry.clusters().iter() {
            let mut status = ClusterStatus {
                name: cluster.name.to_string(),
                mode: cluster.mode,
                ready: false,
                agent: None,
                tunnels: 0,
                since: None,
                interruptions: interruptions.get(&cluster.name).copied().unwrap_or_default(),
                streams: Some(self.limits.streams.used(&cluster.name)),
                connections: Some(self.limits.connections.used(&cluster.name)),
                last_errors: self.requests.last_errors(&cluster.name),
                message: None,
            };
            match self.registry.tunnels_of(&cluster.name) {
                Ok(tunnels) => {
                    status.ready = true;
                    status.agent = tunnels.first().map(|tunnel| tunnel.agent.to_string());
                    status.tunnels = tunnels.len();
                    status.since = tunnels.iter().map(|tunnel| tunnel.since.into()).min();
                    for tunnel in &tunnels {
                        served.entry(Arc::as_ptr(tunnel)).or_default().push(status.name.clone());
                    }
                }
                Err(absent) => {
                    status.since = absent.since.map(Moment::from);
                    status.message = Some(absent.to_string());
                }
            }
            clusters.push(status);
        }
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        let tunnels = self.registry.connected().tunnels();
        let mut tunnels: Vec<_> = tunnels
            .iter()
            .map(|tunnel| TunnelStatus {
                agent: tunnel.agent.to_string(),
                instance: tunnel.instance.chars().take(MAX_TEXT).collect(),
                version: tunnel.version.chars().take(MAX_TEXT).collect(),
                protocol: tunnel.protocol.to_string(),
                since: tunnel.since.into(),
                clusters: served.remove(&Arc::as_ptr(tunnel)).unwrap_or_default(),
                streams: tunnel.streams(),
                round_trip_micros: u64::try_from(tunnel.round_trip().as_micros()).unwrap_or(u64::MAX),
                certificate_not_after: tunnel.certificate_until.map(Moment::from),
            })
            .collect();
        tunnels.sort_by(|one, other| (&one.agent, one.since).cmp(&(&other.agent, other.since)));
        for tunnel in &mut tunnels {
            tunnel.clusters.sort();
        }
        let links = self.links(&tunnels);
        let (refused_offers, other_refused_offers) = self.refused_offers();
        ServerStatus {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: Moment::now(),
            ready: clusters.iter().all(|cluster| cluster.ready),
            clusters,
            tunnels,
            links,
            refused_offers,
            other_refused_offers,
            memberships: self.memberships.all(),
            certificates: self.certificates().into_iter().map(certificate).collect(),
            tokens: self.tokens.all().into_iter().map(token).collect(),
            revocations: self.client_cas.revocations().in_force().map(revocations),
        }
    }

    fn links(&self, tunnels: &[TunnelStatus]) -> Vec<LinkStatus> {
        let status = |(agent, traffic): (AgentId, Traffic)| {
            let tunnels = tunnels.iter().filter(|tunnel| tunnel.agent == agent.as_str());
            let round_trips = tunnels.clone().map(|tunnel| tunnel.round_trip_micros);
            LinkStatus {
                tunnels: tunnels.count(),
                registered_tunnels: traffic.tunnels,
                // A tunnel has 0 until it is measured.
                round_trip_micros: round_trips.filter(|micros| *micros > 0).min(),
                received_bytes: traffic.received,
                sent_bytes: traffic.sent,
                compressed_bytes: traffic.encoded,
                decompressed_bytes: traffic.decoded,
                agent: agent.to_string(),
            }
        };
        self.links.all().into_iter().map(status).collect()
    }

    fn refused_offers(&self) -> (Vec<RefusedOfferStatus>, usize) {
        let (refused, others) = self.registry.connected().refused(MAX_REFUSED);
        let refused = refused.into_iter().map(|offer| RefusedOfferStatus {
            cluster: offer.cluster.to_string(),
            agent: offer.agent.to_string(),
            reason: offer.reason.as_str().to_owned(),
            message: offer.message,
        });
        (refused.collect(), others)
    }

    /// The certificates of the configuration, by the keys that name them.
    pub(super) fn certificates(&self) -> Vec<(String, Validity)> {
        let mut certificates = vec![("servingCA".to_owned(), Some(self.serving_ca.borrow().validity()))];
        certificates.push(("agentCA".to_owned(), self.agent_ca.borrow().validity()));
        if let Some(identity) = &self.peer_identity {
            certificates.push(("peers.identity".to_owned(), Some(identity.borrow().validity())));
        }
        let mut clients = self.client_cas.all();
        clients.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        let clients = clients.iter().map(|(cluster, ca)| (format!("clientCA of {cluster}"), ca.borrow().validity()));
        certificates.extend(clients);
        certificates.into_iter().filter_map(|(name, validity)| Some((name, validity?))).collect()
    }
}

fn certificate((name, validity): (String, Validity)) -> CertificateStatus {
    CertificateStatus { name, not_after: validity.not_after.into() }
}

fn token(token: Token) -> TokenStatus {
    let Token { id, agent, expires, uses_left, .. } = token;
    TokenStatus { id, agent: agent.to_string(), not_after: expires, uses_left }
}

fn revocations(InForce { digest, agents, users, credentials }: InForce) -> RevocationsStatus {
    RevocationsStatus { digest, agents, users, credentials }
}
