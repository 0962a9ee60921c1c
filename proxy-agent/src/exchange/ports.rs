//! Decides which node port the host gets for each requested one.

use std::collections::{BTreeMap, BTreeSet};

use rewrite::node_ports::{NodePort, Protocol, is_ours};
use serde_json::Value;

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The whole object: absent fields are removed.
    Whole,
    /// The fields to change.
    Partial,
    /// The fields of one manager.
    Apply,
}

/// The node ports of a Service that is written.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// The requested ports that the host has replaced, from the current annotations.
    before: BTreeMap<NodePort, u16>,
    /// The same, for the new annotations.
    requested: BTreeMap<NodePort, u16>,
    /// The ports on the host.
    real: BTreeMap<NodePort, u16>,
    /// The other annotations of the Service.
    pub(crate) annotations: Vec<String>,
    /// The ports that the host has refused.
    taken: BTreeSet<u16>,
    /// Whether the request writes only the status.
    is_status: bool,
    /// The places of ports in the current body.
    met: BTreeSet<NodePort>,
}

/// The node port that the host gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The requested port.
    AsRequested,
    /// The port that the host has.
    Put(u16),
    /// None: the host keeps its port, or chooses one.
    LeftOut,
}

// === impl Ports ===

impl Ports {
    /// The ports of the Service on the host.
    pub(crate) fn new(live: Option<&Value>, taken: BTreeSet<u16>, is_status: bool) -> Self {
        let mut ports = Self { taken, is_status, ..Self::default() };
        let Some(live) = live else { return ports };
        for (key, value) in live["metadata"]["annotations"].as_object().into_iter().flatten() {
            if !is_ours(key) {
                ports.annotations.push(key.clone());
            } else if let (Some(at), Some(requested)) = (NodePort::of_annotation(key), value.as_str()) {
                ports.before.extend(requested.parse().ok().map(|requested| (at, requested)));
            }
        }
        for port in live["spec"]["ports"].as_array().into_iter().flatten() {
            ports.real.extend(place(port).zip(number(&port["nodePort"])));
        }
        let health = number(&live["spec"]["healthCheckNodePort"]);
        ports.real.extend(health.map(|port| (NodePort::HealthCheck, port)));
        ports
    }

    /// Whether a body without our annotations needs no change.
    pub(crate) fn are_plain(&self) -> bool {
        self.before.is_empty() && self.taken.is_empty()
    }

    /// The node ports of the Service that clients of the virtual cluster see.
    pub(crate) fn shown(&self) -> impl Iterator<Item = u16> {
        self.real.iter().map(|(at, real)| *self.before.get(at).unwrap_or(real))
    }

    /// The ports on the host that replace the port `requested`.
    pub(crate) fn given_for(&self, requested: u16) -> impl Iterator<Item = u16> {
        let at = self.before.iter().filter(move |(_, other)| **other == requested).map(|(at, _)| at);
        at.filter_map(|at| self.real.get(at).copied())
    }

    /// Begins a body.
    pub(crate) fn begin(&mut self) {
        self.requested.clone_from(&self.before);
        self.met.clear();
    }

    /// Decides about a port of the current body. The port 0 is no request.
    pub(crate) fn settle(&mut self, form: Form, at: NodePort, requested: Option<u16>) -> Settled {
        let requested = requested.filter(|requested| *requested != 0 && !self.is_status);
        let Some(requested) = requested else {
            if form != Form::Apply {
                self.met.insert(at);
            }
            return Settled::AsRequested;
        };
        if self.before.get(&at) != Some(&requested) && !self.taken.contains(&requested) {
            self.requested.remove(&at);
            return Settled::AsRequested;
        }
        self.met.insert(at);
        self.requested.insert(at, requested);
        match self.real.get(&at) {
            // A manager must not become the owner of a port that it has not requested, so its apply omits the port.
            Some(real) if form != Form::Apply => Settled::Put(*real),
            _ => Settled::LeftOut,
        }
    }

    /// Ends a body. `has_ports` is whether a Service of its type has node ports.
    pub(crate) fn end(&mut self, form: Form, has_ports: bool) {
        if self.is_status {
            self.requested.clone_from(&self.before);
        } else if form != Form::Partial {
            self.requested.retain(|at, _| has_ports && self.met.contains(at));
        }
    }

    /// The new annotations.
    pub(crate) fn requested(&self) -> impl Iterator<Item = (String, String)> {
        self.requested.iter().map(|(at, requested)| (at.annotation(), requested.to_string()))
    }

    /// The annotations that change. `None` removes one.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let gone = self.before.keys().filter(|at| !self.requested.contains_key(at)).map(|at| (at.annotation(), None));
        let new = self.requested.iter().filter(|(at, requested)| self.before.get(at) != Some(requested));
        gone.chain(new.map(|(at, requested)| (at.annotation(), Some(requested.to_string()))))
    }
}

/// Whether Services of a type have node ports (`ServiceType` in core/v1).
pub(crate) fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// The identity of an element of `spec.ports`.
pub(crate) fn place(port: &Value) -> Option<NodePort> {
    let protocol = Protocol::of(port["protocol"].as_str().unwrap_or_default())?;
    Some(NodePort::Of { port: number(&port["port"])?, protocol })
}

/// A port's number.
pub(crate) fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| number.try_into().ok())
}
