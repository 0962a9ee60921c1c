//! The files of certificates.

use ops::config::{FilePath, Located};
use serde::Deserialize;

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyPair {
    /// PEM.
    pub certificate: Located<FilePath>,
    /// PEM, PKCS#8.
    pub key: Located<FilePath>,
}

/// The CA of the agents' certificates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AgentCa {
    /// PEM.
    pub certificate: Located<FilePath>,
    /// PEM, PKCS#8. Only for `enrolment`.
    #[serde(default)]
    pub key: Option<Located<FilePath>>,
}
