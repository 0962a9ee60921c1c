//! A token of the cluster's OIDC issuer, and what a connection knows about the last one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use oidc::{Authenticator, Refused, User, Verified};
use protocol::Identity;

use super::peer::ClientIdentity;
use crate::revocations::CertificateId;

/// The token of a request, and what verifies it.
#[derive(Clone)]
pub(super) struct IssuerToken {
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) token: String,
}

/// The last token of a connection. Nearly all connections have only one at a time.
#[derive(Debug, Default)]
pub(super) struct LastToken(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    found: IssuerToken,
    verified: Verified,
    identity: Arc<ClientIdentity>,
}

// === impl IssuerToken ===

impl IssuerToken {
    pub(super) fn verify_now(&self) -> Option<Result<Verified, Refused>> {
        self.authenticator.verify_now(self.authenticator.token(&self.token)?)
    }

    pub(super) async fn verify(self) -> Result<Verified, Refused> {
        let token = self.authenticator.token(&self.token).ok_or(Refused::Issuer)?;
        self.authenticator.verify(token).await
    }
}

impl PartialEq for IssuerToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.authenticator, &other.authenticator) && self.token == other.token
    }
}

impl std::fmt::Debug for IssuerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuerToken").field("authenticator", &self.authenticator).finish_non_exhaustive()
    }
}

// === impl LastToken ===

impl LastToken {
    /// The identity that a token proves, if it is the last one, and its verification would have the same result again.
    pub(super) fn known(&self, found: &IssuerToken) -> Option<Arc<ClientIdentity>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| known.found == *found)?;
        let is_current = found.authenticator.is_current(&known.verified, SystemTime::now());
        is_current.then(|| Arc::clone(&known.identity))
    }

    /// The identity of a verified token, which is the last one from now on.
    pub(super) fn learn(&self, found: &IssuerToken, verified: Verified) -> Arc<ClientIdentity> {
        let User { name, groups, uid, issued, .. } = verified.user.clone();
        let id = CertificateId::of_token(&name, issued);
        let identity = Arc::new(ClientIdentity::new(&Identity { user: name, groups, uid, credential: None }, id));
        let known = Known { found: found.clone(), verified, identity: Arc::clone(&identity) };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        identity
    }
}
