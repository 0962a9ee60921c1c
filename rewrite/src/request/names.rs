//! Maps names for the host, for all encodings.

use bytes::Bytes;

use super::{Reason, Refusal, Request};
use crate::name::{HostNamespace, VirtualNamespace};

// === impl Request ===

impl Request {
    /// The host's form of `metadata.namespace`, which is not empty.
    pub(super) fn own_namespace(&self, given: &[u8]) -> Result<Bytes, Refusal> {
        match &self.namespace {
            Some(namespace) if given == namespace.as_ref() => {
                Ok(self.mapping.host(namespace).map_err(Reason::from)?.to_bytes())
            }
            Some(_) => Err(Reason::NamespaceMismatch.into()),
            // Kubernetes clears it for cluster-scoped objects, and many charts have it.
            None => Ok(Bytes::new()),
        }
    }

    /// The host's name for a namespace in a body.
    pub(super) fn host(&self, given: &[u8]) -> Result<HostNamespace, Refusal> {
        let name = virtual_name(given)?;
        Ok(self.mapping.host(&name).map_err(Reason::from)?)
    }

    /// The host's name for a user or group.
    pub(super) fn identity(&self, given: &str) -> Result<String, Refusal> {
        Ok(self.mapping.identity(given).map_err(Reason::from)?)
    }

    /// The host's name for a ClusterRole.
    pub(super) fn role(&self, given: &str) -> Result<String, Refusal> {
        Ok(self.mapping.role(given).map_err(Reason::from)?)
    }

    /// The namespace in a token Secret. It stays unchanged if it is not the name of a namespace.
    pub(super) fn token_namespace(&self, given: &[u8]) -> Option<Bytes> {
        let host = self.mapping.host(&VirtualNamespace::from_bytes(given).ok()?).ok()?;
        Some(host.to_bytes())
    }
}

/// A name of a namespace in a body.
pub(super) fn virtual_name(given: &[u8]) -> Result<VirtualNamespace, Refusal> {
    VirtualNamespace::from_bytes(given)
        .map_err(|_| Reason::NotANamespace { value: String::from_utf8_lossy(given).into_owned() }.into())
}
