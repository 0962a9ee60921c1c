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

/// A certificate alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Certificate {
    /// PEM.
    pub certificate: Located<FilePath>,
}
