//! What becomes of each node port that a body asks for.

use std::collections::{BTreeMap, BTreeSet};

use rewrite::node_ports::{NodePort, Protocol, is_ours};
use serde_json::Value;

/// How much a body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) enum Form {
    /// The object: what is absent is to be absent.
    Whole,
    /// What is to change.
    Partial,
    /// What one manager wants.
    Apply,
}

/// What is known of the node ports of one Service that is written.
#[derive(Debug, Default)]
pub(in crate::exchange) struct Ports {
    /// What was asked for where the host has chosen, as its annotations say now.
    before: BTreeMap<NodePort, u16>,
    /// The same, as they are to say.
    asked: BTreeMap<NodePort, u16>,
    /// What the host has.
    real: BTreeMap<NodePort, u16>,
    /// Other annotations that the Service has.
    pub(super) annotations: Vec<String>,
    /// What the host has refused.
    taken: BTreeSet<u16>,
    /// Whether only its status is written.
    is_status: bool,
    /// Where the body in hand says anything about a port.
    met: BTreeSet<NodePort>,
}

/// A node port on its way to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// As it was asked for.
    AsAsked,
    /// What the host has.
    Put(u16),
    /// Not at all: the host keeps what it has, or chooses.
    LeftOut,
}

// === impl Ports ===

impl Ports {
    /// Of a Service as the host has it.
    pub(super) fn new(live: Option<&Value>, taken: BTreeSet<u16>, is_status: bool) -> Self {
        let mut ports = Self { taken, is_status, ..Self::default() };
        let Some(live) = live else { return ports };
        for (key, value) in live["metadata"]["annotations"].as_object().into_iter().flatten() {
            if !is_ours(key) {
                ports.annotations.push(key.clone());
            } else if let (Some(at), Some(asked)) = (NodePort::of_annotation(key), value.as_str()) {
                ports.before.extend(asked.parse().ok().map(|asked| (at, asked)));
            }
        }
        for port in live["spec"]["ports"].as_array().into_iter().flatten() {
            ports.real.extend(place(port).zip(number(&port["nodePort"])));
        }
        let health = number(&live["spec"]["healthCheckNodePort"]);
        ports.real.extend(health.map(|port| (NodePort::HealthCheck, port)));
        ports
    }

    /// The host has refused a port.
    pub(super) fn replace(&mut self, port: u16) {
        self.taken.insert(port);
    }

    pub(super) fn taken(&self) -> Vec<u16> {
        self.taken.iter().copied().collect()
    }

    pub(super) fn into_taken(self) -> BTreeSet<u16> {
        self.taken
    }

    /// Whether a body that does not speak of our annotations passes as it is.
    pub(super) fn are_plain(&self) -> bool {
        self.before.is_empty() && self.taken.is_empty()
    }

    /// What a client of the virtual cluster is shown as a node port of the Service.
    pub(super) fn shown(&self) -> impl Iterator<Item = u16> {
        self.real.iter().map(|(at, real)| *self.before.get(at).unwrap_or(real))
    }

    /// What the host has where `asked` was asked for.
    pub(super) fn given_for(&self, asked: u16) -> impl Iterator<Item = u16> {
        let at = self.before.iter().filter(move |(_, other)| **other == asked).map(|(at, _)| at);
        at.filter_map(|at| self.real.get(at).copied())
    }

    /// Begins with a body.
    pub(super) fn begin(&mut self) {
        self.asked.clone_from(&self.before);
        self.met.clear();
    }

    /// What becomes of a port that the body in hand asks for; none is asked for with 0.
    pub(super) fn settle(&mut self, form: Form, at: NodePort, asked: Option<u16>) -> Settled {
        let asked = asked.filter(|asked| *asked != 0 && !self.is_status);
        let Some(asked) = asked else {
            if form != Form::Apply {
                self.met.insert(at);
            }
            return Settled::AsAsked;
        };
        if self.before.get(&at) != Some(&asked) && !self.taken.contains(&asked) {
            self.asked.remove(&at);
            return Settled::AsAsked;
        }
        self.met.insert(at);
        self.asked.insert(at, asked);
        match self.real.get(&at) {
            // An applier must not come to own a port that it has not asked for, and leaves no trace by saying nothing.
            Some(real) if form != Form::Apply => Settled::Put(*real),
            _ => Settled::LeftOut,
        }
    }

    /// Ends with a body. `has_ports` says whether a Service of its type has any.
    pub(super) fn end(&mut self, form: Form, has_ports: bool) {
        if self.is_status {
            self.asked.clone_from(&self.before);
        } else if form != Form::Partial {
            self.asked.retain(|at, _| has_ports && self.met.contains(at));
        }
    }

    /// What the annotations are to say.
    pub(super) fn asked(&self) -> impl Iterator<Item = (String, String)> {
        self.asked.iter().map(|(at, asked)| (at.annotation(), asked.to_string()))
    }

    /// What of them changes; nothing takes one away.
    pub(super) fn changes(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let gone = self.before.keys().filter(|at| !self.asked.contains_key(at)).map(|at| (at.annotation(), None));
        let new = self.asked.iter().filter(|(at, asked)| self.before.get(at) != Some(asked));
        gone.chain(new.map(|(at, asked)| (at.annotation(), Some(asked.to_string()))))
    }
}

/// Whether Services of a type have node ports (`ServiceType` in core/v1).
pub(super) fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Which one an element of `spec.ports` is.
pub(super) fn place(port: &Value) -> Option<NodePort> {
    let protocol = Protocol::of(port["protocol"].as_str().unwrap_or_default())?;
    Some(NodePort::Of { port: number(&port["port"])?, protocol })
}

/// A port's number.
pub(super) fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| number.try_into().ok())
}
