//! Certificates for agents: the first one for a join token, later ones for the previous certificate.
//!
//! See [`protocol::enrolment`] for the exchange. What is *not* here: the listener, and TLS.
//!
//! Reading order: [`tokens`] (what an operator has created), then [`Enrolment`]. `shown` is for the status.

pub(crate) mod shown;
pub mod tokens;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ops::files::Watched;
use ops::pki::{Authority, CertificateFacts, RequestError, RequestedKey};
use protocol::enrolment::{CertificateRequest, IssuedCertificate, TokenCredential};
use protocol::{AgentId, JsonBody as _};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::revocations::{CertificateId, Revocations};
use tokens::{TokenError, Tokens};

/// Issues the certificates of agents.
#[derive(Debug)]
pub struct Enrolment {
    pub(crate) tokens: Tokens,
    pub(crate) agent_ca: Watched<Authority>,
    pub(crate) serving_ca: Watched<Authority>,
    pub(crate) revocations: Revocations,
    /// How long certificates are valid.
    pub(crate) lifetime: Duration,
    /// One for each token that may be looked at now ([`CONCURRENT`]).
    pub(crate) turns: Arc<Semaphore>,
}

/// The maximum number of tokens that are looked at at the same time. They can be on a file system that hangs, and each of them
/// then keeps a thread.
pub(crate) const CONCURRENT: usize = 4;

/// Why an agent gets no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolmentError {
    /// The certificate was revoked after its connection was accepted.
    #[error("the certificate of the agent is revoked")]
    Revoked,
    /// Certificates of proxy-servers are not renewed: one stolen key would be worth all agents.
    #[error("the certificate of the proxy-servers is not renewed; issue a new one with `atoll certs agent`")]
    Peer,
    /// The join token is not valid.
    #[error("the join token is not valid: it may have expired, or may have been used already; create a new one")]
    Token(#[source] TokenError),
    /// The body is not a certificate request.
    #[error("the body is not a request for a certificate")]
    Body,
    /// The request is invalid.
    #[error("the certificate signing request is not accepted")]
    Request(#[source] RequestError),
    /// The proxy-server could not issue the certificate.
    #[error("the proxy-server cannot issue a certificate")]
    Issue(#[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Enrolment ===

impl Enrolment {
    /// The CAs of this proxy-server, in PEM.
    pub(crate) fn server_ca(&self) -> String {
        self.serving_ca.borrow().certificate_pem().to_owned()
    }

    /// Issues the first certificate of an agent. Uses files, so it can block.
    pub(crate) fn enrol(&self, credential: &TokenCredential, body: &[u8]) -> Result<IssuedCertificate, EnrolmentError> {
        // First, because an invalid request must not use up the token.
        let key = requested_key(body)?;
        let now = SystemTime::now();
        let revoked_before = |agent: &AgentId| self.revocations.agent_revoked_before(agent);
        let agent = self.tokens.use_once(credential, now, revoked_before).map_err(|error| match error {
            TokenError::Store(error) => EnrolmentError::Issue(error.into()),
            error => EnrolmentError::Token(error),
        })?;
        // The clock of the machine on which the operator has revoked the previous certificates may be ahead.
        let enrolled = now.max(revoked_before(&agent));
        let (issued, credential_id) = self.issue(agent, &key, enrolled)?;
        info!(
            agent = %issued.agent,
            token = credential.id,
            certificate = credential_id,
            "issued a certificate for a join token"
        );
        Ok(issued)
    }

    /// Issues a further certificate for an agent that has one. It is revoked with the first one.
    pub(crate) fn renew(
        &self,
        agent: &AgentId,
        previous: &CertificateId,
        body: &[u8],
    ) -> Result<IssuedCertificate, EnrolmentError> {
        let key = requested_key(body)?;
        // Checked last: the list can have changed while the request arrived.
        if self.revocations.revokes_agent(agent, previous) {
            return Err(EnrolmentError::Revoked);
        }
        let (issued, credential_id) = self.issue(agent.clone(), &key, previous.enrolled())?;
        info!(%agent, previous = previous.credential(), certificate = credential_id, "renewed a certificate");
        Ok(issued)
    }

    /// Returns the certificate, and its credential id.
    fn issue(
        &self,
        agent: AgentId,
        key: &RequestedKey,
        enrolled: SystemTime,
    ) -> Result<(IssuedCertificate, String), EnrolmentError> {
        let authority: Arc<Authority> = self.agent_ca.borrow();
        let certificate = authority
            .certify_client(key, agent.as_str(), self.lifetime, enrolled)
            .inspect_err(|error| warn!(%agent, error = error as &dyn std::error::Error, "cannot issue a certificate"))
            .map_err(|error| EnrolmentError::Issue(error.into()))?;
        let facts =
            CertificateFacts::read(certificate.as_bytes()).map_err(|error| EnrolmentError::Issue(error.into()))?;
        let credential_id = facts.into_iter().next().map(|leaf| leaf.credential).unwrap_or_default();
        Ok((IssuedCertificate { agent, certificate, server_ca: self.server_ca() }, credential_id))
    }
}

fn requested_key(body: &[u8]) -> Result<RequestedKey, EnrolmentError> {
    let CertificateRequest { request } = CertificateRequest::decode(body).ok_or(EnrolmentError::Body)?;
    RequestedKey::verify(request.as_bytes()).map_err(EnrolmentError::Request)
}

#[cfg(test)]
mod tests {
    use ops::pki::{NewKey, certificates_from_pem};
    use ops::tls::{ClientCa, PeerIdentity};

    use super::*;
    use crate::config::{Revocation, RevocationList};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn enrolment(dir: &std::path::Path) -> Enrolment {
        let authority = |name| Watched::fixed(Authority::create(name, 30 * DAY).unwrap());
        Enrolment {
            tokens: Tokens::new(dir.to_owned()),
            agent_ca: authority("agents"),
            serving_ca: authority("servers"),
            revocations: Revocations::default(),
            lifetime: DAY,
            turns: Arc::new(Semaphore::new(CONCURRENT)),
        }
    }

    fn body() -> Vec<u8> {
        CertificateRequest { request: NewKey::create().unwrap().request }.encode()
    }

    fn identity(enrolment: &Enrolment, issued: &IssuedCertificate) -> PeerIdentity {
        let ca = ClientCa::from_pem(enrolment.agent_ca.borrow().certificate_pem().as_bytes()).unwrap();
        ca.verify(&certificates_from_pem(issued.certificate.as_bytes()).unwrap(), SystemTime::now()).unwrap()
    }

    #[test]
    fn a_token_is_worth_one_certificate_of_its_agent() {
        let dir = tempfile::tempdir().unwrap();
        let enrolment = enrolment(dir.path());
        let agent: AgentId = "site-a".parse().unwrap();
        let token = enrolment.tokens.create(&agent, DAY, 1, SystemTime::now()).unwrap();
        // A request that cannot be answered costs nothing.
        assert!(matches!(enrolment.enrol(&token, b"{}"), Err(EnrolmentError::Body)));
        let bad = CertificateRequest { request: "x".to_owned() }.encode();
        assert!(matches!(enrolment.enrol(&token, &bad), Err(EnrolmentError::Request(_))));
        let issued = enrolment.enrol(&token, &body()).unwrap();
        assert_eq!(issued.agent, agent);
        assert_eq!(identity(&enrolment, &issued).common_name, "site-a");
        assert!(matches!(enrolment.enrol(&token, &body()), Err(EnrolmentError::Token(TokenError::Unknown))));
    }

    #[test]
    fn a_renewal_outlives_no_revocation() {
        let dir = tempfile::tempdir().unwrap();
        let mut enrolment = enrolment(dir.path());
        let agent: AgentId = "site-a".parse().unwrap();
        // Lists and certificates contain whole seconds.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs());
        let token = enrolment.tokens.create(&agent, DAY, 2, now).unwrap();
        let first = CertificateId::from(&identity(&enrolment, &enrolment.enrol(&token, &body()).unwrap()));
        // A proxy-server that does not have the newest list renews the certificate.
        let stolen = CertificateId::from(&identity(&enrolment, &enrolment.renew(&agent, &first, &body()).unwrap()));
        assert_ne!(stolen.credential(), first.credential());

        let revocation = Revocation {
            agent: Some(agent.clone()),
            issued_before: Some((now + Duration::from_secs(60)).into()),
            ..Revocation::default()
        };
        enrolment.revocations = Revocations::fixed(&RevocationList { revoked: vec![revocation.into()] });
        assert!(enrolment.revocations.revokes_agent(&agent, &stolen));
        assert!(matches!(enrolment.renew(&agent, &stolen, &body()), Err(EnrolmentError::Revoked)));
        assert!(matches!(enrolment.enrol(&token, &body()), Err(EnrolmentError::Token(TokenError::Revoked))));
        let later = now + Duration::from_secs(60);
        let token = enrolment.tokens.create(&agent, DAY, 1, later).unwrap();
        let new = CertificateId::from(&identity(&enrolment, &enrolment.enrol(&token, &body()).unwrap()));
        assert!(!enrolment.revocations.revokes_agent(&agent, &new));
    }
}
