//! The registration that an agent sends when it dials, and the possible responses.
//!
//! The proxy-server does not trust it: the certificate is the agent's identity, and the proxy-server's configuration
//! determines which clusters the agent may offer. The registration can only restrict this.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AgentId, ClusterName, MemberSettings, ProtocolVersion};

/// The size limit of a registration, in bytes: about a thousand clusters.
pub const MAX_REGISTRATION: usize = 64 * 1024;

/// The body of the upgrade request, as JSON. Each side ignores fields that it does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// The version of the contract that the agent uses.
    pub protocol: ProtocolVersion,
    /// Must be equal to the common name of the agent's certificate. It exists to detect a confusion of files at once.
    pub agent: AgentId,
    /// Identifies this process among the replicas of an agent. It is random and changes at every start.
    pub instance: String,
    /// The software version of the agent, for `atoll status`.
    pub version: String,
    /// The clusters in the agent's configuration.
    pub clusters: Vec<Offer>,
    /// The names of optional capabilities: [`crate::offers::CAPABILITY`], [`crate::encoding::CAPABILITY`].
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// One cluster that an agent serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name in both configurations.
    pub name: ClusterName,
    /// Its mode.
    pub mode: Mode,
    /// In the offers of a proxy-server: the agent that serves it. An agent does not name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What the agent asks for in Karmada. A registration has none, because of its size limit.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "karmada")]
    pub member: Option<MemberSettings>,
}

/// How the tunnel transports a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A slice of a host cluster: TLS ends at the proxy-server, and the agent rewrites.
    #[default]
    Virtual,
    /// A whole edge cluster: bytes are forwarded end to end, including TLS.
    Physical,
}

/// The proxy-server accepts the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acceptance {
    /// The version of the contract that the proxy-server uses.
    pub protocol: ProtocolVersion,
    /// Identifies the proxy-server process, so that agents that dial several addresses can see whether they are the same.
    pub server: String,
    /// The DNS domain of the endpoints of clusters, each of which is `<name>.<domain>`. Earlier versions do not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// The proxy-server refuses the agent: the JSON body of a 4xx or 5xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Refusal {
    /// For programs.
    pub reason: RefusalReason,
    /// For people: what is wrong, and what to do.
    pub message: String,
    /// The agent must not dial again before this time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// Why a registration or an offer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The request was not a registration.
    Malformed,
    /// The certificate is valid, but the registration names another agent.
    IdentityMismatch,
    /// The proxy-server's configuration does not grant the cluster to this certificate, or not in this mode. The reason of
    /// a whole registration if none of its clusters is accepted.
    NotGranted,
    /// An agent with another identity serves that cluster.
    Conflict,
    /// The versions of the two sides are incompatible.
    Incompatible,
    /// The proxy-server cannot accept the agent now. A later attempt may succeed. Reserved: no proxy-server has sent it yet, and
    /// agents obey it.
    Unavailable,
    /// The proxy-server has dialled itself.
    Itself,
    /// The operator of the proxy-server has revoked the certificate.
    Revoked,
    /// A reason of a newer proxy-server.
    #[serde(other)]
    Unknown,
}

// === impl Registration ===

impl Registration {
    /// Parses the body of an upgrade request.
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

// === impl Offer ===

impl Offer {
    /// The offer of an agent.
    pub fn new(name: ClusterName, mode: Mode) -> Self {
        Self { name, mode, agent: None, member: None }
    }
}

// === impl Acceptance ===

impl Acceptance {
    /// The value of the [`crate::upgrade::ACCEPTANCE`] header.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings always serialise")
    }

    /// Parses the value of the header. `None` if it is not an acceptance.
    pub fn decode(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }
}

// === impl RefusalReason ===

impl RefusalReason {
    /// The word on the wire, for status and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "Malformed",
            Self::IdentityMismatch => "IdentityMismatch",
            Self::NotGranted => "NotGranted",
            Self::Conflict => "Conflict",
            Self::Incompatible => "Incompatible",
            Self::Unavailable => "Unavailable",
            Self::Itself => "Itself",
            Self::Revoked => "Revoked",
            Self::Unknown => "Unknown",
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// A refusal without a time for the next attempt.
    pub fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after_seconds: None }
    }

    /// Sets the time before the next attempt.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_seconds = Some(wait.as_secs().max(1));
        self
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> http::StatusCode {
        match self.reason {
            RefusalReason::Malformed => http::StatusCode::BAD_REQUEST,
            RefusalReason::IdentityMismatch | RefusalReason::NotGranted | RefusalReason::Revoked => {
                http::StatusCode::FORBIDDEN
            }
            RefusalReason::Conflict | RefusalReason::Itself => http::StatusCode::CONFLICT,
            RefusalReason::Incompatible => http::StatusCode::UPGRADE_REQUIRED,
            RefusalReason::Unavailable | RefusalReason::Unknown => http::StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The JSON body.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and enums always serialise")
    }

    /// Parses a body. If it is not a refusal, it becomes one, so that the agent can log it.
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
                Offer::new("ke-beijing".parse().unwrap(), Mode::Virtual),
                Offer::new("branch-7".parse().unwrap(), Mode::Physical),
            ],
            capabilities: vec![],
        }
    }

    #[test]
    fn a_registration_survives_the_wire() {
        assert_eq!(Registration::decode(&registration().encode()), Ok(registration()));
    }

    #[test]
    fn the_registration_of_an_agent_of_1_0_is_read() {
        let recorded = br#"{"protocol":"1.0","agent":"site-a","instance":"f00","version":"0.1.0",
            "clusters":[{"name":"ke-beijing","mode":"virtual"},{"name":"branch-7","mode":"physical"}],
            "capabilities":["offers"]}"#;
        let read = Registration::decode(recorded).unwrap();
        assert_eq!(ProtocolVersion::CURRENT.accepts(read.protocol), Ok(()));
        assert_eq!((read.clusters, read.capabilities), (registration().clusters, vec!["offers".to_owned()]));
    }

    #[test]
    fn unknown_fields_of_a_newer_agent_are_ignored() {
        let mut value: serde_json::Value = serde_json::from_slice(&registration().encode()).unwrap();
        value["metered"] = true.into();
        assert_eq!(Registration::decode(value.to_string().as_bytes()), Ok(registration()));
    }

    #[test]
    fn the_text_of_a_reason_is_the_word_on_the_wire() {
        use RefusalReason as R;
        for reason in [
            R::Malformed,
            R::IdentityMismatch,
            R::NotGranted,
            R::Conflict,
            R::Incompatible,
            R::Unavailable,
            R::Itself,
            R::Revoked,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn a_reason_of_a_newer_server_is_unknown_not_an_error() {
        let body = br#"{"reason":"Hibernating","message":"zzz"}"#;
        let refusal = Refusal::decode(http::StatusCode::CONFLICT, body);
        assert_eq!(refusal.reason, RefusalReason::Unknown);
        assert_eq!(refusal.message, "zzz");
    }

    #[test]
    fn the_page_of_another_server_is_quoted() {
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
