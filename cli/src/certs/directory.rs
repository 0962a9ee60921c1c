//! The directory with CAs and certificates.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ops::files::{Existing, Secrecy, WriteError, write};
use ops::pki::{Authority, PemPair};

/// The absolute path of the directory, because configurations can be in other directories.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

/// The two files of a certificate.
#[derive(Clone, Debug)]
pub(crate) struct PairPath {
    /// Everybody can read it.
    pub(crate) certificate: PathBuf,
    /// Only its owner can read it.
    pub(crate) key: PathBuf,
}

// === impl Directory ===

impl Directory {
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(std::path::absolute(path).with_context(|| path.display().to_string())?))
    }

    /// Signs the proxy-server's certificates for clients and agents.
    pub(crate) fn serving_ca(&self) -> PairPath {
        self.pair("serving-ca")
    }

    /// Signs the certificates of agents.
    pub(crate) fn agent_ca(&self) -> PairPath {
        self.pair("agent-ca")
    }

    /// Signs the certificates of one cluster's clients.
    pub(crate) fn client_ca(&self, cluster: &str) -> PairPath {
        self.pair(&format!("clusters/{cluster}/client-ca"))
    }

    /// An agent's own certificate.
    pub(crate) fn agent(&self, id: &str) -> PairPath {
        self.pair(&format!("agents/{id}"))
    }

    /// The certificate of a user of a cluster's destinations.
    pub(crate) fn user(&self, cluster: &str, user: &str) -> PairPath {
        self.pair(&format!("clusters/{cluster}/users/{user}"))
    }

    /// The list of revoked certificates (`atoll revoke`).
    pub(crate) fn revocations(&self) -> PathBuf {
        self.0.join("revocations.yaml")
    }

    fn pair(&self, stem: &str) -> PairPath {
        PairPath { certificate: self.0.join(format!("{stem}.crt")), key: self.0.join(format!("{stem}.key")) }
    }
}

// === impl PairPath ===

impl PairPath {
    /// Reads the CA in these files.
    pub(crate) fn read_authority(&self) -> anyhow::Result<Authority> {
        let read = |path: &Path| {
            fs::read(path).with_context(|| format!("cannot read {}; `atoll certs init` creates it", path.display()))
        };
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        Authority::from_pem(&certificate, &key).with_context(|| format!("{}", self.certificate.display()))
    }

    /// Writes both files.
    pub(crate) fn write(&self, pair: &PemPair, existing: Existing) -> Result<(), WriteError> {
        // The key first: a certificate without its key would look complete.
        write(&self.key, pair.key.expose().as_bytes(), Secrecy::Secret, existing)?;
        write(&self.certificate, pair.certificate.as_bytes(), Secrecy::Public, existing)
    }
}

/// Writes all certificates and keys, and prints their paths. If a file exists and must not be replaced, it writes none.
pub(crate) fn write_pairs(pairs: &[(PairPath, &PemPair)], force: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    if existing == Existing::Refuse {
        let paths = || pairs.iter().flat_map(|(path, _)| [&path.certificate, &path.key]);
        if let Some(path) = paths().find(|path| path.symlink_metadata().is_ok()) {
            bail!("{} already exists; no file was written (--force replaces existing files)", path.display());
        }
    }
    for (path, pair) in pairs {
        path.write(pair, existing)?;
        writeln!(out, "wrote {}", path.certificate.display())?;
        writeln!(out, "wrote {} (secret)", path.key.display())?;
    }
    Ok(())
}

/// A path as a YAML scalar: plain if possible, otherwise quoted (every JSON string is a YAML string).
pub(crate) fn yaml(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
    if text.chars().all(plain) && text.starts_with('/') {
        text.into_owned()
    } else {
        serde_json::Value::String(text.into_owned()).to_string()
    }
}
