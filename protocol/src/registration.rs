//! What an agent says of itself when it dials, and what it may hear in answer.
//!
//! None of it is trusted: the agent's identity is its certificate, and which clusters it may offer stands in the
//! proxy-server's configuration. The registration only narrows that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AgentId, ClusterName, ProtocolVersion};

/// The largest registration that a proxy-server reads, in bytes: about a thousand clusters.
pub const MAX_REGISTRATION: usize = 64 * 1024;

/// The body of the upgrade request, as JSON. Fields that a side does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// The contract that the agent speaks.
    pub protocol: ProtocolVersion,
    /// Must equal the common name of the agent's certificate; said so that a mix-up of files is noticed at once.
    pub agent: AgentId,
    /// Which process this is, among the replicas of one agent: random, new at every start.
    pub instance: String,
    /// The agent's software version, for `atoll status`.
    pub version: String,
    /// Clusters that this agent's own configuration serves.
    pub clusters: Vec<Offer>,
    /// Optional abilities, named. One is known: [`crate::offers::CAPABILITY`].
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// One cluster that an agent serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name in both configurations.
    pub name: ClusterName,
    /// How it is carried.
    pub mode: Mode,
}

/// How a cluster is carried through the tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A slice of a host cluster: TLS ends at the proxy-server, the agent rewrites.
    #[default]
    Virtual,
    /// A whole edge cluster: bytes pass end to end, TLS included.
    Physical,
}

/// The proxy-server's yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acceptance {
    /// The contract that the proxy-server speaks.
    pub protocol: ProtocolVersion,
    /// Which proxy-server process answered: agents that dial several addresses see whether they are one.
    pub server: String,
}

/// The proxy-server's no, as the JSON body of a 4xx or 5xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Refusal {
    /// For programs.
    pub reason: RefusalReason,
    /// For people: what is wrong and what to do.
    pub message: String,
    /// The agent must not dial again sooner, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// Why a registration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The request was not a registration.
    Malformed,
    /// The certificate is good, but the registration names another agent.
    IdentityMismatch,
    /// A cluster is offered that the proxy-server's configuration does not grant to this certificate, or not in this
    /// mode.
    NotGranted,
    /// Another identity serves that cluster.
    Conflict,
    /// The two sides' versions do not work together.
    Incompatible,
    /// Too many agents, or the proxy-server is stopping: later may help.
    Unavailable,
    /// A reason that a newer proxy-server gives.
    #[serde(other)]
    Unknown,
}

// === impl Registration ===

impl Registration {
    /// Reads the body of an upgrade request.
    pub fn decode(body: &[u8]) -> Result<Self, Refusal> {
        if body.len() > MAX_REGISTRATION {
            return Err(Refusal::new(
                RefusalReason::Malformed,
                format!("a registration is at most {MAX_REGISTRATION} bytes; offer fewer clusters from one agent"),
            ));
        }
        let registration: Self = serde_json::from_slice(body)
            .map_err(|err| Refusal::new(RefusalReason::Malformed, format!("not a registration: {err}")))?;
        if registration.instance.len() > 64 || registration.version.len() > 64 {
            return Err(Refusal::new(RefusalReason::Malformed, "instance and version are at most 64 bytes"));
        }
        Ok(registration)
    }

    /// The body of an upgrade request.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and enums always serialise")
    }
}

// === impl Acceptance ===

impl Acceptance {
    /// The value of the [`crate::upgrade::ACCEPTANCE`] header.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings always serialise")
    }

    /// Reads the header's value; `None` if it is not an acceptance.
    pub fn decode(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }
}

// === impl Refusal ===

impl Refusal {
    /// A refusal that says nothing of when to come back.
    pub fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after_seconds: None }
    }

    /// Asks the agent to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_seconds = Some(wait.as_secs().max(1));
        self
    }

    /// The HTTP status that carries it.
    pub fn status(&self) -> http::StatusCode {
        match self.reason {
            RefusalReason::Malformed => http::StatusCode::BAD_REQUEST,
            RefusalReason::IdentityMismatch | RefusalReason::NotGranted => http::StatusCode::FORBIDDEN,
            RefusalReason::Conflict => http::StatusCode::CONFLICT,
            RefusalReason::Incompatible => http::StatusCode::UPGRADE_REQUIRED,
            RefusalReason::Unavailable | RefusalReason::Unknown => http::StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The JSON body.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and enums always serialise")
    }

    /// Reads a body; anything that is not a refusal becomes one, so that the agent can log what it got.
    pub fn decode(status: http::StatusCode, body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|_| {
            let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
            Self::new(RefusalReason::Unknown, format!("{status}: {text}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn registration() -> Registration {
        Registration {
            protocol: ProtocolVersion::CURRENT,
            agent: "site-a".parse().unwrap(),
            instance: "f00".into(),
            version: "0.1.0".into(),
            clusters: vec![
                Offer { name: "ke-beijing".parse().unwrap(), mode: Mode::Virtual },
                Offer { name: "branch-7".parse().unwrap(), mode: Mode::Physical },
            ],
            capabilities: vec![],
        }
    }

    #[test]
    fn a_registration_survives_the_wire() {
        assert_eq!(Registration::decode(&registration().encode()), Ok(registration()));
    }

    #[test]
    fn unknown_fields_of_a_newer_agent_are_ignored() {
        let mut value: serde_json::Value = serde_json::from_slice(&registration().encode()).unwrap();
        value["metered"] = true.into();
        assert_eq!(Registration::decode(value.to_string().as_bytes()), Ok(registration()));
    }

    #[test]
    fn a_reason_of_a_newer_server_is_unknown_not_an_error() {
        let body = br#"{"reason":"Hibernating","message":"zzz"}"#;
        let refusal = Refusal::decode(http::StatusCode::CONFLICT, body);
        assert_eq!(refusal.reason, RefusalReason::Unknown);
        assert_eq!(refusal.message, "zzz");
    }

    #[test]
    fn a_page_of_some_other_server_is_quoted() {
        let refusal = Refusal::decode(http::StatusCode::BAD_GATEWAY, b"<html>nginx");
        assert!(refusal.message.contains("502") && refusal.message.contains("nginx"));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused_not_fatal(body in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = Registration::decode(&body);
            let _ = Refusal::decode(http::StatusCode::FORBIDDEN, &body);
            let _ = Acceptance::decode(&body);
        }
    }
}
