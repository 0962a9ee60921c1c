//! The names of namespaces on the host, each looked up once for a body.
//!
//! Most bodies name one or two namespaces, in several fields. A lookup in the index of the host hashes twice.

use bytes::Bytes;

use super::names::{Names, virtual_name};
use super::refusal::Refusal;
use super::report::Report;
use crate::name::VirtualNamespace;

/// The namespaces that fields of the current body had.
#[derive(Default)]
pub(super) struct Hosts {
    /// The name of the object's own namespace.
    own: Option<Bytes>,
    /// Those of other fields, which are also in the report.
    named: Vec<(VirtualNamespace, Bytes)>,
}

// === impl Hosts ===

impl Hosts {
    /// The host's form of `metadata.namespace`, which is not empty.
    pub(super) fn own(&mut self, names: &Names, given: &[u8]) -> Result<Bytes, Refusal> {
        if !names.is_own(given)? {
            // Kubernetes clears it for cluster-scoped objects, and many charts have it.
            return Ok(Bytes::new());
        }
        match &self.own {
            Some(host) => Ok(host.clone()),
            None => Ok(self.own.insert(names.own_host()?).clone()),
        }
    }

    /// The host's name for a namespace in a body, which is recorded in `report`.
    pub(super) fn named(&mut self, names: &Names, report: &mut Report, given: &[u8]) -> Result<Bytes, Refusal> {
        if let Some((_, host)) = self.named.iter().find(|(name, _)| name.as_ref() == given) {
            return Ok(host.clone());
        }
        let name = virtual_name(given)?;
        let host = names.host(&name)?.to_bytes();
        report.names(&name);
        if self.named.len() < Report::MANY {
            self.named.push((name, host.clone()));
        }
        Ok(host)
    }
}
