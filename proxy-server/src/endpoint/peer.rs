//! The identity of a client, by its certificate or by a token of an OIDC issuer. Agents handle all other tokens, because only the
//! host can review them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use ops::tls::{ClientCa, ClientCertificateError, PeerIdentity};
use protocol::audit::UserInfo;
use protocol::{ClusterName, Identity};
use request_traces::Trust;
use rustls_pki_types::CertificateDer;

use super::refusal::Refusal;
use crate::limits::{Limit, User};
use crate::revocations::{CertificateId, Revocations, Revoked};

/// The group of all authenticated users, and the extra field with the ID of the credential (`AllAuthenticated` and
/// `CredentialIDKey` in apiserver's `pkg/authentication/user/user.go`).
const AUTHENTICATED: &str = "system:authenticated";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The certificates that the client sent. They are not verified yet, because the CA depends on the request.
#[derive(Debug)]
pub(super) struct Peer {
    chain: Vec<CertificateDer<'static>>,
    /// The last result, and the CA that it is for. Nearly all connections are for one cluster.
    last: Mutex<Option<(Arc<ClientCa>, Verified)>>,
    /// The clusters that have accepted a credential on this connection. Of each user, the oldest credential.
    clusters: Mutex<Vec<(ClusterName, CertificateId)>>,
}

/// The identity that a certificate or a token proves, in the forms that each request of the connection needs.
#[derive(Debug)]
pub(super) struct ClientIdentity {
    pub(super) user: User,
    /// Whether the client decides which of its requests are traced.
    pub(super) trust: Trust,
    /// The headers for the agent.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// For the audit log.
    pub(super) info: UserInfo,
    certificate: CertificateId,
}

/// The maximum number of users of one connection. A gateway that sends the requests of more users opens more connections.
const MAX_USERS: usize = 256;

#[derive(Debug)]
struct Verified {
    identity: Arc<ClientIdentity>,
    /// The time at which the chain must be verified again.
    until: SystemTime,
}

/// Like an API server, only these groups decide (`notSystemPrivilegedGroup` in apiserver's
/// `pkg/endpoints/filters/traces.go`). Whoever decides can fill the queue of spans, and use up the collector.
fn trust(groups: &[String]) -> Trust {
    let is_trusted = groups.iter().any(|group| matches!(group.as_str(), "system:masters" | "system:monitoring"));
    if is_trusted { Trust::Parent } else { Trust::Link }
}

// === impl Peer ===

impl Peer {
    pub(super) fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self { chain, last: Mutex::default(), clusters: Mutex::default() }
    }

    /// Verifies the certificates against the current CA of a cluster. `None` if the client sent none.
    ///
    /// The chain is verified once for each connection and CA, and again when one of its certificates has expired.
    /// kube-apiserver verifies it for every request.
    pub(super) fn identify(
        &self,
        ca: &Arc<ClientCa>,
        now: SystemTime,
    ) -> Result<Option<Arc<ClientIdentity>>, ClientCertificateError> {
        if self.chain.is_empty() {
            return Ok(None);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last_ca, verified)) = &*last
            && Arc::ptr_eq(last_ca, ca)
            && now < verified.until
        {
            return Ok(Some(Arc::clone(&verified.identity)));
        }
        let peer = ca.verify(&self.chain, now)?;
        let certificate = CertificateId::from(&peer);
        let PeerIdentity { common_name, organizations, uid, credential, valid_until: until, .. } = peer;
        let identity = Identity { user: common_name, groups: organizations, uid, credential: Some(credential) };
        let identity = Arc::new(ClientIdentity::new(&identity, certificate));
        *last = Some((Arc::clone(ca), Verified { identity: Arc::clone(&identity), until }));
        Ok(Some(identity))
    }

    /// Records that a cluster has accepted a certificate or a token. From now on, [`Peer::revoked`] covers it.
    pub(super) fn accepted(&self, cluster: &ClusterName, identity: &ClientIdentity) -> Result<(), Refusal> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let new = &identity.certificate;
        let is_full = clusters.len() >= MAX_USERS;
        let mut known = clusters.iter_mut();
        match known.find(|(known, id)| known == cluster && id.common_name() == new.common_name()) {
            Some((_, oldest)) if new.enrolled() < oldest.enrolled() => *oldest = new.clone(),
            Some(_) => {}
            None if is_full => return Err(Refusal::TooMany(Limit::Connections)),
            None => clusters.push((cluster.clone(), new.clone())),
        }
        Ok(())
    }

    /// Completes when a credential is revoked in a cluster that has accepted it.
    pub(super) async fn revoked(&self, revocations: &Revocations) {
        let is_revoked = |list: &Revoked| {
            let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            clusters.iter().any(|(cluster, certificate)| list.revokes_user(cluster, certificate))
        };
        revocations.until(is_revoked).await;
    }
}

// === impl ClientIdentity ===

impl ClientIdentity {
    pub(super) fn new(identity: &Identity, certificate: CertificateId) -> Self {
        let (trust, info) = (trust(&identity.groups), info(identity));
        Self { user: identity.user.as_str().into(), trust, headers: identity.headers(), info, certificate }
    }

    /// The certificate, for [`Revocations`].
    pub(super) fn certificate(&self) -> &CertificateId {
        &self.certificate
    }

    /// Adds the headers for the agent. Remove those of the client first ([`super::head::request`]).
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.extend(self.headers.iter().cloned());
    }
}

/// The user as an API server sees it.
fn info(identity: &Identity) -> UserInfo {
    let Identity { user, groups, uid, credential } = identity;
    let mut groups = groups.clone();
    if !groups.iter().any(|group| group == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    let extra = credential.iter().map(|id| (CREDENTIAL_ID.to_owned(), vec![id.clone()])).collect();
    UserInfo { username: user.clone(), uid: uid.clone().unwrap_or_default(), groups, extra }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A certificate with this name and lifetime.
    fn params(name: &str, lifetime: Duration) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) =
            ((SystemTime::now() - HOUR).into(), (SystemTime::now() + lifetime).into());
        params
    }

    #[test]
    fn a_certificate_is_refused_when_its_intermediate_has_ended() {
        let key = || KeyPair::generate().unwrap();
        let authority = |name, lifetime| {
            let mut params = params(name, lifetime);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let (root_key, intermediate_key) = (key(), key());
        let (root, intermediate) = (authority("root", 9 * HOUR), authority("intermediate", HOUR));
        let ca = root.self_signed(&root_key).unwrap();
        let signed = intermediate.signed_by(&intermediate_key, &Issuer::new(root, root_key)).unwrap();
        let mut leaf = params("jane", 8 * HOUR);
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = leaf.signed_by(&key(), &Issuer::new(intermediate, intermediate_key)).unwrap();
        let ca = Arc::new(ClientCa::from_pem(ca.pem().as_bytes()).unwrap());
        let peer = Peer::new(vec![leaf.der().clone(), signed.der().clone()]);
        let now = SystemTime::now();
        for at in [now, now + HOUR / 2, now] {
            assert_eq!(peer.identify(&ca, at).unwrap().unwrap().user.as_ref(), "jane");
        }
        assert!(matches!(peer.identify(&ca, now + 2 * HOUR), Err(ClientCertificateError::Untrusted(_))));
    }
}
