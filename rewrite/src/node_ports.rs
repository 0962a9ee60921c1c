//! Node ports that a virtual cluster asks for and does not get.
//!
//! A node port is the host's, one for all of its virtual clusters (`portallocator` in kube-apiserver's service registry).
//! Where another one has the port that was asked for, the host chooses, and what was asked is kept in an annotation of
//! the host's Service, one for each port, so that appliers can own them one by one. The virtual cluster sees what it
//! asked for, and in [`SHOWN_ANNOTATION`] what it got.

use std::fmt;

use crate::name::HIDDEN_PREFIX;

/// The annotation that says, to the virtual cluster, which port stands for which: `30080=31234`.
pub const SHOWN_ANNOTATION: &str = "atoll.dev/node-ports";

/// What the annotations of the host begin with; a [`NodePort`] follows.
const ASKED: &str = "asked-node-port.";
/// Stands for `spec.healthCheckNodePort`.
const HEALTH_CHECK: &str = "health-check";

/// A place of a Service that holds a node port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodePort {
    /// In `spec.ports`, whose elements differ in these two (`+listMapKey` in core/v1).
    Of {
        /// `port`
        port: u16,
        /// `protocol`
        protocol: Protocol,
    },
    /// `spec.healthCheckNodePort`
    HealthCheck,
}

/// `Protocol` in core/v1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// What it is if nothing is said.
    #[default]
    Tcp,
    /// `UDP`
    Udp,
    /// `SCTP`
    Sctp,
}

// === impl NodePort ===

impl NodePort {
    /// The annotation of the host that keeps what was asked for here.
    pub fn annotation(self) -> String {
        format!("{HIDDEN_PREFIX}{ASKED}{self}")
    }

    /// What an annotation of the host is about.
    pub fn of_annotation(key: &str) -> Option<Self> {
        let place = key.strip_prefix(HIDDEN_PREFIX)?.strip_prefix(ASKED)?;
        if place == HEALTH_CHECK {
            return Some(Self::HealthCheck);
        }
        let (port, protocol) = place.split_once('.')?;
        let protocol = Protocol::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(protocol))?;
        Some(Self::Of { port: port.parse().ok()?, protocol })
    }
}

impl fmt::Display for NodePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of { port, protocol } => write!(f, "{port}.{}", protocol.as_str().to_ascii_lowercase()),
            Self::HealthCheck => f.write_str(HEALTH_CHECK),
        }
    }
}

// === impl Protocol ===

impl Protocol {
    const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// By its name in Kubernetes, which may be empty.
    pub fn of(name: &str) -> Option<Self> {
        if name.is_empty() {
            return Some(Self::default());
        }
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Its name in Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// Whether an annotation of a Service is Atoll's word about its node ports.
pub fn is_ours(key: &str) -> bool {
    key == SHOWN_ANNOTATION || key.strip_prefix(HIDDEN_PREFIX).is_some_and(|rest| rest.starts_with(ASKED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_annotation_says_what_it_is_about(port: u16, protocol in 0..3_usize) {
            let asked = NodePort::Of { port, protocol: Protocol::ALL[protocol] };
            let key = asked.annotation();
            prop_assert_eq!(NodePort::of_annotation(&key), Some(asked));
            prop_assert!(is_ours(&key));
            // Kubernetes takes 63 characters behind the slash (`IsQualifiedName`).
            prop_assert!(key.len() <= HIDDEN_PREFIX.len() + 63);
        }
    }

    #[test]
    fn nothing_else_is_one() {
        let health = NodePort::HealthCheck.annotation();
        assert_eq!(health, "atoll.dev/asked-node-port.health-check");
        assert_eq!(NodePort::of_annotation(&health), Some(NodePort::HealthCheck));
        for other in ["", "atoll.dev/node-ports", "atoll.dev/asked-node-port.", "atoll.dev/asked-node-port.80.icmp"] {
            assert_eq!(NodePort::of_annotation(other), None, "{other}");
        }
        assert!(is_ours(SHOWN_ANNOTATION) && !is_ours("atoll.dev/other") && !is_ours("asked-node-port.80.tcp"));
        assert_eq!(Protocol::of(""), Some(Protocol::Tcp));
        assert_eq!(Protocol::of("tcp"), None);
    }
}
