//! The configuration of a client of an API server: its address, its trusted CAs, and the client's credentials.
//!
//! [`parse`](mod@parse) reads a kubeconfig into a [`ClientConfig`], and opens no other file. [`ClientConfig::open`]
//! reads the files that the kubeconfig names, and reloads them when they change. [`Document`] writes a
//! kubeconfig. What is *not* here: connections and requests.

pub mod address;
pub mod bearer;
pub mod client_config;
mod document;
mod open_error;
pub mod parse;

use std::path::{Path, PathBuf};

use ops::files::{Reloader, Watched};

pub use address::{Address, AddressError};
pub use bearer::{Bearer, TokenError};
pub use client_config::{ClientConfig, Credentials, Material};
pub use document::{Document, certificate_user, data};
pub use open_error::OpenError;
pub use parse::KubeconfigError;

/// Reads a kubeconfig, and reads it again whenever it changes.
pub fn watch(path: PathBuf, reloader: &Reloader) -> Result<Watched<ClientConfig>, OpenError> {
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    Ok(reloader.watch([path], move |[content]| parse::parse(content, &directory))?)
}
