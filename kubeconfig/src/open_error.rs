//! Why the files of a client configuration cannot be used.

use ops::files::LoadError;
use ops::tls::{CaError, IdentityError};

use crate::bearer::TokenError;

/// The files of a client configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file cannot be read or used: the kubeconfig, a certificate, or a token.
    #[error(transparent)]
    File(#[from] LoadError),
    /// `certificate-authority-data`.
    #[error("`certificate-authority-data`")]
    Authorities(#[source] CaError),
    /// `client-certificate-data` and `client-key-data`.
    #[error("`client-certificate-data` and `client-key-data`")]
    Identity(#[source] IdentityError),
    /// `token`.
    #[error("`token`")]
    Token(#[source] TokenError),
}
