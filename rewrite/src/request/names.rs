//! Names for the host, in all encodings.

use bytes::Bytes;

use super::refusal::{Reason, Refusal};
use crate::mapping::FOREIGN_PREFIX;
use crate::name::{HostNamespace, VirtualNamespace, is_label};
use crate::{Mapping, program};

/// The names of the virtual cluster, for one request.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) mapping: Mapping,
    /// The namespace in the path of the request.
    pub(super) own: Option<VirtualNamespace>,
    /// In reviews, the namespace that replaces those that the virtual cluster does not have.
    pub(super) root: Option<HostNamespace>,
}

// === impl Names ===

impl Names {
    /// Whether `metadata.namespace`, which is not empty, is the namespace in the path of the request. `false` if there is
    /// none in the path.
    pub(super) fn is_own(&self, given: &[u8]) -> Result<bool, Refusal> {
        match &self.own {
            Some(namespace) if given == namespace.as_ref() => Ok(true),
            Some(_) => Err(Reason::NamespaceMismatch.into()),
            None => Ok(false),
        }
    }

    /// The host's name for the namespace in the path of the request. Empty if there is none.
    pub(super) fn own_host(&self) -> Result<Bytes, Refusal> {
        self.own.as_ref().map_or_else(|| Ok(Bytes::new()), |namespace| Ok(self.host(namespace)?.to_bytes()))
    }

    /// The host's name for a namespace in a body.
    pub(super) fn namespace(&self, given: &[u8]) -> Result<HostNamespace, Refusal> {
        self.host(&virtual_name(given)?)
    }

    /// The host's name for a namespace.
    pub(super) fn host(&self, name: &VirtualNamespace) -> Result<HostNamespace, Refusal> {
        Ok(self.mapping.host(name).map_err(Reason::from)?)
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

    /// The host's name for a custom object.
    pub(super) fn custom_object(&self, given: &str) -> Result<String, Refusal> {
        Ok(self.mapping.object(given).map_err(Reason::from)?)
    }

    /// The name in a rule on the host. `None` if it does not change.
    pub(super) fn in_rule(&self, names: program::Names, given: &[u8]) -> Result<Option<Bytes>, Refusal> {
        match names {
            // No namespace can have such a name.
            program::Names::OfNamespaces if is_label(given) => Ok(Some(self.namespace(given)?.to_bytes())),
            program::Names::OfRoles if !given.is_empty() => {
                Ok(Some(self.role(&String::from_utf8_lossy(given))?.into()))
            }
            program::Names::Mixed => Err(Reason::MixedNames.into()),
            _ => Ok(None),
        }
    }

    /// The namespace that replaces this one in a review. It may be any text.
    pub(super) fn review_namespace(&self, given: &[u8]) -> Result<Bytes, Refusal> {
        let Some(root) = &self.root else { return self.namespace(given).map(|host| host.to_bytes()) };
        let host = VirtualNamespace::from_bytes(given).ok().and_then(|name| self.mapping.host(&name).ok());
        let member = host.filter(|host| self.mapping.member(host.as_ref()).is_some());
        Ok(member.map_or_else(|| root.to_bytes(), |host| host.to_bytes()))
    }

    /// The name that replaces that of a ClusterRole in a review. It may be any text.
    pub(super) fn review_role(&self, given: &str) -> String {
        self.mapping.role(given).unwrap_or_else(|_| format!("{FOREIGN_PREFIX}{given}"))
    }

    /// The name that replaces that of a namespace in a review. It may be any text.
    pub(super) fn review_name(&self, given: &str) -> Result<String, Refusal> {
        if self.root.is_none() {
            return self.namespace(given.as_bytes()).map(|host| host.to_string());
        }
        let host = VirtualNamespace::new(given).ok().and_then(|name| self.mapping.host(&name).ok());
        Ok(host.map_or_else(|| format!("{FOREIGN_PREFIX}{given}"), |host| host.to_string()))
    }
}

/// A name of a namespace in a body.
pub(super) fn virtual_name(given: &[u8]) -> Result<VirtualNamespace, Refusal> {
    VirtualNamespace::from_bytes(given)
        .map_err(|_| Reason::NotANamespace { value: String::from_utf8_lossy(given).into_owned() }.into())
}
