//! What becomes of names on their way to the host, whichever way a body is written.

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
            // Of an object that is in no namespace Kubernetes clears it, and many a chart has it.
            None => Ok(Bytes::new()),
        }
    }

    /// The host's name for a namespace that a body names.
    pub(super) fn host(&self, given: &[u8]) -> Result<HostNamespace, Refusal> {
        let name = virtual_name(given)?;
        Ok(self.mapping.host(&name).map_err(Reason::from)?)
    }

    /// The host's name for a user or group.
    pub(super) fn identity(&self, given: &str) -> Result<String, Refusal> {
        Ok(self.mapping.identity(given).map_err(Reason::from)?)
    }

    /// The host's name for a cluster role.
    pub(super) fn role(&self, given: &str) -> Result<String, Refusal> {
        Ok(self.mapping.role(given).map_err(Reason::from)?)
    }

    /// The namespace in a token Secret, which is left alone if it is none.
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
