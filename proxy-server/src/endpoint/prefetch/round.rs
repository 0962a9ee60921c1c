//! A health check and the requests that follow it on the same connection.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use protocol::audit_id::AUDIT_ID;
use protocol::digest::Digest;
use protocol::prefetch::{self, LIFETIME};
use protocol::{ClusterName, detached};
use tokio::time::Instant;

use super::super::documents::{Document, Documents, Key};
use super::expected::{Client, Expectations, Followed};
use crate::config::Cluster;

/// The last health check of a connection, until another request ends it.
#[derive(Debug, Default)]
pub(crate) struct LastCheck(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    round: Option<Round>,
    /// The number of requests on the connection that have ended a round, or have begun one.
    requests: u64,
}

/// A health check that has succeeded.
#[derive(Debug)]
struct Round {
    /// The headers of the health check for the agent.
    headers: HeaderMap,
    client: Client,
    /// Its ID in the audit log of the host.
    audit_id: Option<HeaderValue>,
    /// The documents about which the agent has decided. Each is sent once.
    documents: Vec<Decided>,
    until: Instant,
}

/// A document that the agent validates. It does not hold the body, so the store may evict it.
#[derive(Debug)]
pub(crate) struct Decided {
    key: Key,
    head: HeaderMap,
    digest: Digest,
}

/// A response that the client may get.
#[derive(Debug)]
pub(crate) struct Prefetched {
    pub(crate) head: HeaderMap,
    pub(crate) document: Document,
}

/// What the process knows about documents and clients.
#[derive(Clone, Copy)]
pub(crate) struct Stores<'a> {
    pub(crate) documents: &'a Documents,
    pub(crate) expectations: &'a Expectations,
}

/// What to do with a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Send it to the agent.
    Ask(Prefetching),
    /// Send this response to the client.
    Answer(Prefetched),
}

/// The role of a request in prefetching.
#[derive(Debug)]
pub(crate) enum Prefetching {
    /// Nothing.
    Not,
    /// It is a health check with which the agent decides about these documents.
    Check { headers: HeaderMap, client: Client, documents: Vec<Decided>, sent: Sent },
    /// It follows a health check, and the agent has not decided about this document yet.
    Follows { client: Client, key: Key },
}

/// When a health check was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    at: Instant,
    request: u64,
}

// === impl LastCheck ===

impl LastCheck {
    /// Decides whether a request needs the agent, and prepares it.
    pub(crate) fn request(&self, stores: Stores<'_>, cluster: &Cluster, request: &mut Request<()>) -> Decision {
        if prefetch::is_health_check(request.method(), request.uri().path()) {
            let sent = Sent { at: Instant::now(), request: self.end() };
            return Decision::Ask(check(stores, cluster, request, sent));
        }
        let key = Key::of(request).filter(Key::is_prefetchable);
        let mut state = self.lock();
        let round = state.round.as_mut().filter(|round| round.is_for(request.headers()));
        let (Some(round), Some(key)) = (round, key) else {
            drop(state);
            self.end();
            return Decision::Ask(Prefetching::Not);
        };
        let client = round.client;
        let decided = round.documents.iter().position(|decided| decided.key == key);
        let decided = decided.map(|at| round.documents.swap_remove(at));
        let stored = decided.as_ref().and_then(|decided| {
            stores.documents.get(cluster, &key).filter(|document| *document.digest() == decided.digest)
        });
        match (decided, stored) {
            (Some(Decided { mut head, .. }), Some(document)) => {
                match &round.audit_id {
                    Some(id) => head.insert(AUDIT_ID, id.clone()),
                    None => head.remove(AUDIT_ID),
                };
                stores.expectations.used(&cluster.name, client, &key);
                Decision::Answer(Prefetched { head, document })
            }
            _ => Decision::Ask(Prefetching::Follows { client, key }),
        }
    }

    /// Another request ends the round. Returns the number of such requests.
    pub(crate) fn end(&self) -> u64 {
        let mut state = self.lock();
        state.round = None;
        state.requests += 1;
        state.requests
    }

    /// Learns from the response of the agent.
    pub(crate) fn responded(
        &self,
        expectations: &Expectations,
        cluster: &Cluster,
        prefetching: Prefetching,
        (status, head): (StatusCode, &HeaderMap),
        is_served: impl Fn(&ClusterName) -> bool,
    ) {
        if status != StatusCode::OK {
            return;
        }
        match prefetching {
            Prefetching::Not => {}
            Prefetching::Check { headers, client, documents, sent } => {
                let unchanged = prefetch::unchanged(head);
                let documents = documents.into_iter().enumerate();
                let documents = documents.filter(|(at, _)| unchanged.contains(at)).map(|(_, document)| document);
                let mut state = self.lock();
                if state.requests != sent.request {
                    return;
                }
                state.round = Some(Round {
                    headers,
                    client,
                    audit_id: head.get(&AUDIT_ID).cloned(),
                    documents: documents.collect(),
                    // Counts from the request, because the network may have delayed the response after the agent decided.
                    until: sent.at + LIFETIME,
                });
            }
            Prefetching::Follows { client, key } => {
                expectations.learn(&cluster.name, client, (key, head), is_served);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names the documents that the client is expected to request next.
fn check(stores: Stores<'_>, cluster: &Cluster, request: &mut Request<()>, sent: Sent) -> Prefetching {
    let mut headers = detached::head(request.headers());
    // So that it is not printed.
    if let Some(token) = headers.get_mut(header::AUTHORIZATION) {
        token.set_sensitive(true);
    }
    let client = stores.expectations.client(&headers);
    let (mut named, mut documents) = (Vec::new(), Vec::new());
    for Followed { key, head } in stores.expectations.of(&cluster.name, client) {
        let Some(document) = stores.documents.get(cluster, &key) else { continue };
        let digest = *document.digest();
        let Some(prefetch) = key.prefetch(prefetch::digest(&head, &digest)) else { continue };
        named.push(prefetch);
        documents.push(Decided { key, head, digest });
    }
    if !named.is_empty() {
        prefetch::write(&named, request.headers_mut());
    }
    Prefetching::Check { headers, client, documents, sent }
}

// === impl Round ===

impl Round {
    /// Whether the agent has decided for a client with these headers, and the decision is still valid.
    fn is_for(&self, headers: &HeaderMap) -> bool {
        // One of them is the cluster, because requests of a connection may name several (`/clusters/NAME`).
        let is_compared = |name: &HeaderName| *name != header::ACCEPT;
        let compared = |headers: &HeaderMap| headers.keys().filter(|name| is_compared(name)).count();
        let is_same = |name: &HeaderName| self.headers.get_all(name) == headers.get_all(name);
        Instant::now() < self.until
            && compared(headers) == compared(&self.headers)
            && headers.keys().filter(|name| is_compared(name)).all(is_same)
    }
}
