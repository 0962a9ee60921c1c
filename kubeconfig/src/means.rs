//! What it takes to speak to an API server: where it is, who it must be, and who we are.
//!
//! [`Means`] is what a kubeconfig or a pod's service account says, with its files not read yet.

use std::path::PathBuf;

use ops::files::{LoadError, Reloader, Watched};
use ops::secret::Secret;
use ops::tls::{Identity, ServerCa};
use rustls_pki_types::ServerName;

use crate::OpenError;
use crate::address::Address;
use crate::bearer::Bearer;

/// Parsed, nothing opened.
#[derive(Clone, Debug)]
pub struct Means {
    /// Where it listens.
    pub server: Address,
    /// Whom the certificates of all API servers must be for, instead of the host of each address.
    pub server_name: Option<ServerName<'static>>,
    /// Who must have signed its certificate.
    pub authorities: Material,
    /// A client certificate.
    pub identity: Option<KeyPair>,
    /// A bearer token.
    pub token: Option<Material>,
}

/// Some text, or the file that holds it.
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
    /// PEM, the leaf first.
    pub certificate: Material,
    /// PEM.
    pub key: Material,
}

/// Opened: all of it follows its files.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Who must have signed the API server's certificate.
    pub authorities: Watched<ServerCa>,
    /// Our client certificate.
    pub identity: Option<Watched<Identity>>,
    /// Our token.
    pub bearer: Option<Watched<Bearer>>,
}

// === impl Means ===

impl Means {
    /// Reads what is named. Blocks on the file system.
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
