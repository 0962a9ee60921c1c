//! Node ports that a virtual cluster requests but does not get.
//!
//! The host allocates node ports for all of its virtual clusters (`portallocator` in kube-apiserver's service registry). If the
//! requested port is in use, the host allocates another one. An annotation of the host's Service then has the requested port,
//! one annotation for each port, so that appliers can own them individually. The virtual cluster sees the ports that it
//! requested, and the allocated ports in [`SHOWN_ANNOTATION`].

use std::fmt;

use crate::name::HIDDEN_PREFIX;

/// The annotation that shows the virtual cluster the allocated port for each requested one: `30080=31234`.
pub const SHOWN_ANNOTATION: &str = "atoll.dev/node-ports";

/// The prefix of the host's annotations. A [`NodePort`] follows. Existing Services have this key, so it must not change.
const REQUESTED_PREFIX: &str = "asked-node-port.";
/// The suffix for `spec.healthCheckNodePort`.
const HEALTH_CHECK: &str = "health-check";

/// A field of a Service with a node port.
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
    /// The default.
    #[default]
    Tcp,
    /// `UDP`
    Udp,
    /// `SCTP`
    Sctp,
}

// === impl NodePort ===

impl NodePort {
    /// The annotation of the host with the port that was requested for this field.
    pub fn annotation(self) -> String {
        format!("{HIDDEN_PREFIX}{REQUESTED_PREFIX}{self}")
    }

    /// The field of an annotation of the host.
    pub fn of_annotation(key: &str) -> Option<Self> {
        let place = key.strip_prefix(HIDDEN_PREFIX)?.strip_prefix(REQUESTED_PREFIX)?;
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

/// Whether an annotation of a Service is one of these.
pub fn is_ours(key: &str) -> bool {
    key == SHOWN_ANNOTATION || key.strip_prefix(HIDDEN_PREFIX).is_some_and(|rest| rest.starts_with(REQUESTED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn annotations_are_parsed_and_printed(port: u16, protocol in 0..3_usize) {
            let field = NodePort::Of { port, protocol: Protocol::ALL[protocol] };
            let key = field.annotation();
            prop_assert_eq!(NodePort::of_annotation(&key), Some(field));
            prop_assert!(is_ours(&key));
            // Kubernetes accepts 63 characters after the slash (`IsQualifiedName`).
            prop_assert!(key.len() <= HIDDEN_PREFIX.len() + 63);
        }
    }

    #[test]
    fn other_annotations_are_not_node_ports() {
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
