//! The configuration of a client of an API server: its address, its trusted CAs, and the client's credentials.
//!
//! [`parse`](mod@parse) reads a kubeconfig into a [`ClientConfig`], and opens no other file. [`ClientConfig::open`]
//! reads the files that the kubeconfig names, and reloads them when they change. What is *not* here: connections,
//! requests, and writing kubeconfigs.

pub mod address;
pub mod bearer;
pub mod client_config;
pub mod parse;

use std::path::{Path, PathBuf};

use ops::files::{LoadError, Reloader, Watched};
use ops::tls::{CaError, IdentityError};

pub use address::{Address, AddressError};
pub use bearer::{Bearer, TokenError};
pub use client_config::{ClientConfig, Credentials, Material};
pub use parse::KubeconfigError;

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

/// Reads a kubeconfig, and reads it again whenever it changes.
pub fn watch(path: PathBuf, reloader: &Reloader) -> Result<Watched<ClientConfig>, OpenError> {
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    Ok(reloader.watch([path], move |[content]| parse::parse(content, &directory))?)
}
