//! The configuration of a client of an API server.
//!
//! A [`ClientConfig`] comes from a kubeconfig or from the service account of a pod. Its files have not been read yet.

use std::path::PathBuf;

use ops::files::{LoadError, Reloader, Watched};
use ops::secret::Secret;
use ops::tls::{Identity, ServerCa};
use rustls_pki_types::ServerName;

use crate::address::Address;
use crate::bearer::Bearer;
use crate::open_error::OpenError;

/// A parsed configuration. No file has been opened yet.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The address of the API server.
    pub server: Address,
    /// The name that the certificates of all API servers must have, instead of the host of each address.
    pub server_name: Option<ServerName<'static>>,
    /// The CAs that may sign the certificate of the API server.
    pub authorities: Material,
    /// The client certificate.
    pub identity: Option<KeyPair>,
    /// The bearer token.
    pub token: Option<Material>,
}

/// A text, or the file that contains it.
#[derive(Clone, Debug)]
pub enum Material {
    /// The text itself.
    Inline(Secret),
    /// The file.
    File(PathBuf),
}

/// A client certificate and its key.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// In PEM, leaf certificate first.
    pub certificate: Material,
    /// In PEM.
    pub key: Material,
}

/// The opened credentials. They are reloaded when their files change.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The CAs that may sign the certificate of the API server.
    pub authorities: Watched<ServerCa>,
    /// The client certificate.
    pub identity: Option<Watched<Identity>>,
    /// The bearer token.
    pub bearer: Option<Watched<Bearer>>,
}

// === impl ClientConfig ===

impl ClientConfig {
    /// Reads the files. Blocks on the file system.
    pub fn open(&self, reloader: &Reloader) -> Result<Credentials, OpenError> {
        let authorities = match &self.authorities {
            Material::Inline(pem) => {
                let ca = ServerCa::from_pem(pem.expose().as_bytes());
                Watched::fixed(ca.map_err(OpenError::Authorities)?)
            }
            Material::File(path) => reloader.watch([path.clone()], |[pem]| ServerCa::from_pem(pem))?,
        };
        let identity = self.identity.as_ref();
        let identity = identity.map(|pair| pair.open(reloader)).transpose()?;
        let bearer = match &self.token {
            None => None,
            Some(Material::Inline(token)) => Some(Watched::fixed(Bearer::read(token).map_err(OpenError::Token)?)),
            Some(Material::File(path)) => Some(reloader.watch([path.clone()], |[token]| Bearer::read_file(token))?),
        };
        Ok(Credentials { authorities, identity, bearer })
    }
}

// === impl KeyPair ===

impl KeyPair {
    fn open(&self, reloader: &Reloader) -> Result<Watched<Identity>, OpenError> {
        let opened: Result<_, LoadError> = match (&self.certificate, &self.key) {
            (Material::Inline(certificate), Material::Inline(key)) => {
                let identity = read(certificate, key);
                return Ok(Watched::fixed(identity.map_err(OpenError::Identity)?));
            }
            (Material::File(certificate), Material::File(key)) => reloader
                .watch([certificate.clone(), key.clone()], |[certificate, key]| Identity::from_pem(certificate, key)),
            (Material::File(certificate), Material::Inline(key)) => {
                let key = key.clone();
                reloader.watch([certificate.clone()], move |[certificate]| {
                    Identity::from_pem(certificate, key.expose().as_bytes())
                })
            }
            (Material::Inline(certificate), Material::File(key)) => {
                let certificate = certificate.clone();
                reloader.watch([key.clone()], move |[key]| Identity::from_pem(certificate.expose().as_bytes(), key))
            }
        };
        Ok(opened?)
    }
}

fn read(certificate: &Secret, key: &Secret) -> Result<Identity, ops::tls::IdentityError> {
    Identity::from_pem(certificate.expose().as_bytes(), key.expose().as_bytes())
}
