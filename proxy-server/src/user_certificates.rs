//! Certificates for users of the virtual clusters that an agent has added.
//!
//! See [`protocol::user_certificate`] for the exchange. What is *not* here: the listener, and TLS.

use std::sync::Arc;
use std::time::SystemTime;

use ops::files::Watched;
use ops::pki::{
    Authority, CLOCK_SKEW, CertificateFacts, FactsError, IssueError, RequestError, RequestedKey, Requester,
};
use protocol::user_certificate::{UserCertificate, UserCertificateRequest};
use protocol::{AgentId, ClusterName, JsonBody as _};
use tokio::sync::Semaphore;
use tracing::info;

use crate::grants::{Grants, StoreError};
use crate::revocations::{CertificateId, Revocations};

/// Issues the certificates of users.
#[derive(Clone, Debug)]
pub struct UserCertificates {
    pub(crate) grants: Arc<Grants>,
    pub(crate) serving_ca: Watched<Authority>,
    pub(crate) revocations: Revocations,
    /// One for each certificate that may be issued now ([`CONCURRENT`]).
    pub(crate) turns: Arc<Semaphore>,
}

/// The maximum number of certificates that are issued at the same time. The keys of the client CAs can be on a file system that
/// hangs, and each request then keeps a thread.
pub(crate) const CONCURRENT: usize = 4;

/// Why an agent gets no certificate for a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserCertificateError {
    /// The configuration has no grants, or the agent is another proxy-server.
    #[error("this proxy-server issues no certificates for users: its configuration grants this agent no clusters")]
    NoGrant,
    /// The agent may not have certificates at all.
    #[error("the grant of agent {0} has no `kubeconfigs: true`")]
    NotGranted(AgentId),
    /// The agent may not have them for this cluster.
    #[error("agent {0} has not added cluster {1}, or its grant no longer allows this name")]
    NotAdded(AgentId, ClusterName),
    /// The certificate of the agent was revoked after its connection was accepted.
    #[error("the certificate of the agent is revoked")]
    Revoked,
    /// All certificates of the user are revoked.
    #[error("all certificates of the user are revoked")]
    UserRevoked,
    /// The body is not a request for a certificate.
    #[error("the body is not a request for a certificate of a user")]
    Body,
    /// The user is invalid.
    #[error("{0}")]
    User(String),
    /// The request is invalid.
    #[error("the certificate signing request is not accepted")]
    Request(#[source] RequestError),
    /// The client CA cannot be read.
    #[error("cannot read the client CA of the cluster")]
    Store(#[source] StoreError),
    /// The certificate could not be issued.
    #[error("cannot issue the certificate")]
    Issue(#[source] IssueError),
    /// The certificate cannot be parsed.
    #[error("cannot parse the certificate")]
    Facts(#[source] FactsError),
    /// The thread ended.
    #[error("the thread that issues the certificate ended")]
    Ended,
}

// === impl UserCertificates ===

impl UserCertificates {
    /// Whether the agent may ask for certificates at all.
    pub(crate) fn allow(&self, agent: &AgentId) -> Result<(), UserCertificateError> {
        let is_allowed = self.grants.kubeconfigs_of(agent).is_some();
        if is_allowed { Ok(()) } else { Err(UserCertificateError::NotGranted(agent.clone())) }
    }

    /// Issues a certificate. Uses files, so it can block.
    pub(crate) fn issue(
        &self,
        agent: &AgentId,
        (certificate, valid_until): (&CertificateId, SystemTime),
        body: &[u8],
    ) -> Result<UserCertificate, UserCertificateError> {
        let asked = UserCertificateRequest::decode(body).ok_or(UserCertificateError::Body)?;
        let UserCertificateRequest { cluster, user, request } = &asked;
        if let Some(mistake) = user.mistake() {
            return Err(UserCertificateError::User(mistake));
        }
        let key = RequestedKey::verify(request.as_bytes()).map_err(UserCertificateError::Request)?;
        let granted = self.grants.kubeconfigs_of(agent);
        let granted = granted.ok_or_else(|| UserCertificateError::NotGranted(agent.clone()))?;
        let authority = self.grants.client_ca(agent, cluster).map_err(UserCertificateError::Store)?;
        let authority = authority.ok_or_else(|| UserCertificateError::NotAdded(agent.clone(), cluster.clone()))?;
        // Checked last: the list can have changed while the request arrived.
        if self.revocations.revokes_agent(agent, certificate) {
            return Err(UserCertificateError::Revoked);
        }
        // Older certificates of the user may be revoked, or all that are issued before some time in the future.
        let (now, not_before) = (SystemTime::now(), self.revocations.user_revoked_before(cluster, &user.name));
        if not_before > now + CLOCK_SKEW {
            return Err(UserCertificateError::UserRevoked);
        }
        // When the certificate of the agent has expired, an operator may remove its revocation from the list.
        let lifetime = granted.lifetime.min(valid_until.duration_since(now).unwrap_or_default());
        let requester = Requester { common_name: agent.to_string(), enrolled: certificate.enrolled() };
        let certificate = authority
            .certify_user(&key, (&user.name, &user.groups), lifetime, not_before, &requester)
            .map_err(UserCertificateError::Issue)?;
        let facts = CertificateFacts::read(certificate.as_bytes()).map_err(UserCertificateError::Facts)?;
        let credential = facts.into_iter().next().map(|leaf| leaf.credential).unwrap_or_default();
        info!(
            %agent, %cluster, user = user.name, groups = ?user.groups, certificate = credential,
            "issued a certificate for a user to an agent"
        );
        let server_ca = self.serving_ca.borrow().certificate_pem().to_owned();
        Ok(UserCertificate { certificate, server_ca, address: granted.address(cluster) })
    }
}

#[cfg(test)]
mod tests;
