//! What leads to an API server: where it is, who it must be, and who we are.
//!
//! [`parse`](mod@parse) reads a kubeconfig into [`Means`], opening nothing; [`Means::open`] reads the files that it names, which
//! are followed from then on. What is *not* here: connections, requests, and writing kubeconfigs.

pub mod address;
pub mod bearer;
pub mod means;
pub mod parse;

use std::path::{Path, PathBuf};

use ops::files::{LoadError, Reloader, Watched};
use ops::tls::{CaError, IdentityError};

pub use address::{Address, AddressError};
pub use bearer::{Bearer, TokenError};
pub use means::{Credentials, Material, Means};
pub use parse::KubeconfigError;

/// The files do not lead to an API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file cannot be read, or not be used: the kubeconfig, a certificate, a token.
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

/// Reads a kubeconfig, and again whenever it changes.
pub fn watch(path: PathBuf, reloader: &Reloader) -> Result<Watched<Means>, OpenError> {
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    Ok(reloader.watch([path], move |[content]| parse::parse(content, &directory))?)
}
