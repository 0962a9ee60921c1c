//! `enrolment:`, the certificates that this process issues to agents.

use ops::config::{Duration, FilePath, Located, Problems};
use serde::Deserialize;

use super::certificates::AgentCa;

/// How agents get certificates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrolment {
    /// The directory of the join tokens. `atoll token` and this process write to it.
    pub tokens: Located<FilePath>,
    /// How long the certificates of agents are valid.
    #[serde(default = "default_lifetime")]
    pub certificate_lifetime: Duration,
}

/// The shortest lifetime. An agent renews its certificate at two thirds of this time.
const MIN_LIFETIME: std::time::Duration = std::time::Duration::from_secs(10);

fn default_lifetime() -> Duration {
    Duration::new(std::time::Duration::from_secs(30 * 24 * 3600))
}

pub(super) fn check(enrolment: &Located<Enrolment>, agent_ca: &AgentCa, problems: &mut Problems) {
    if agent_ca.key.is_none() {
        problems.at(enrolment, "set agentCA.key: without it, this process cannot issue certificates");
    }
    if enrolment.certificate_lifetime.get() < MIN_LIFETIME {
        problems.at(enrolment, "certificateLifetime must be at least 10s");
    }
}
