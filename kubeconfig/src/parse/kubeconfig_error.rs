//! Why a kubeconfig cannot be used.

use crate::address::AddressError;

/// The file cannot be used. The messages never contain a value that could be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// It is not YAML, or not a kubeconfig.
    #[error("not a kubeconfig: malformed{}", place(*.line))]
    Malformed {
        /// The line, if known, counted from 1.
        line: Option<u64>,
    },
    /// It has no current context.
    #[error("`current-context` is not set")]
    NoContext,
    /// An entry does not exist that another one names.
    #[error("there is no {kind} {name:?}")]
    Missing {
        /// The kind of the entry: `context`, `cluster` or `user`.
        kind: &'static str,
        /// The name of the entry.
        name: String,
    },
    /// The `server` of the cluster is invalid.
    #[error("the cluster's `server`")]
    Server(#[source] AddressError),
    /// It has `insecure-skip-tls-verify: true`.
    #[error(
        "`insecure-skip-tls-verify: true` is not supported, because credentials are sent only to a verified API server: set `certificate-authority`"
    )]
    Insecure,
    /// It names no CA. The CAs of the machine are not used.
    #[error("the cluster has neither `certificate-authority` nor `certificate-authority-data`")]
    NoAuthority,
    /// The `tls-server-name` cannot be in a certificate.
    #[error("`tls-server-name` {0:?} is not a host name")]
    ServerName(String),
    /// A key is not supported.
    #[error("`{key}` is not supported: {instead}")]
    Unsupported {
        /// The key in the file.
        key: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// A value is not base64 of a text.
    #[error("`{0}` is not base64 of PEM text")]
    Data(&'static str),
    /// It has a certificate without a key, or a key without a certificate.
    #[error("the user has one of `client-certificate` and `client-key`; both are needed")]
    HalfIdentity,
    /// It has no credentials.
    #[error("the user has no credential: neither a client certificate nor a token")]
    NoCredential,
}

fn place(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(" in line {line}"))
}
