//! The identity of a client by its certificate. The agent handles tokens, because only the host can review them.

use std::time::SystemTime;

use ops::tls::{ClientCa, ClientCertificateError, PeerIdentity};
use protocol::Identity;
use rustls_pki_types::CertificateDer;

/// The certificates that the client sent. They are not verified yet, because the CA depends on the request.
#[derive(Debug)]
pub(super) struct Peer {
    chain: Vec<CertificateDer<'static>>,
    /// The last result. Nearly all connections are for one cluster.
    verdict: std::sync::Mutex<Option<(std::sync::Arc<ClientCa>, Verified)>>,
}

#[derive(Clone, Debug)]
struct Verified {
    identity: Identity,
    not_after: SystemTime,
}

// === impl Peer ===

impl Peer {
    pub(super) fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self { chain, verdict: std::sync::Mutex::default() }
    }

    /// Verifies the certificates against the current CA of a cluster. `None` if the client sent none.
    ///
    /// The chain is verified once for each connection and CA. The expiry of the certificate is checked for every
    /// request, as in kube-apiserver.
    pub(super) fn identify(
        &self,
        ca: &std::sync::Arc<ClientCa>,
        now: SystemTime,
    ) -> Result<Option<Identity>, ClientCertificateError> {
        if self.chain.is_empty() {
            return Ok(None);
        }
        let mut verdict = self.verdict.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, verified)) = &*verdict
            && std::sync::Arc::ptr_eq(known, ca)
            && now < verified.not_after
        {
            return Ok(Some(verified.identity.clone()));
        }
        let PeerIdentity { common_name, organizations, uid, credential, not_after, .. } =
            ca.verify(&self.chain, now)?;
        let identity = Identity { user: common_name, groups: organizations, uid, credential: Some(credential) };
        *verdict = Some((std::sync::Arc::clone(ca), Verified { identity: identity.clone(), not_after }));
        Ok(Some(identity))
    }
}
