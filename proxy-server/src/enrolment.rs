//! Certificates for agents: the first one for a join token, later ones for the previous certificate.
//!
//! See [`protocol::enrolment`] for the exchange. What is *not* here: the listener, and TLS.
//!
//! Reading order: [`tokens`] (what an operator has created), then [`Enrolment`].

pub mod tokens;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ops::files::Watched;
use ops::pki::{Authority, RequestError, RequestedKey};
use protocol::AgentId;
use protocol::enrolment::{CertificateRequest, IssuedCertificate, TokenCredential};
use tracing::{info, warn};

use crate::revocations::Revocations;
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
}

/// Why an agent gets no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolmentError {
    /// The credential is no valid token.
    #[error("the join token is not valid: it may have expired, or may have been used already; create a new one")]
    Token(#[source] TokenError),
    /// The body is no request.
    #[error("the body is not a request for a certificate")]
    Body,
    /// The request is invalid.
    #[error("the certificate signing request is not accepted")]
    Request(#[source] RequestError),
    /// The fault of this process.
    #[error("the proxy-server cannot issue a certificate")]
    Issue(#[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Enrolment ===

impl Enrolment {
    /// The CAs of this proxy-server, in PEM.
    pub(crate) fn server_ca(&self) -> String {
        self.serving_ca.borrow().certificate_pem().to_owned()
    }

    /// Issues the first certificate of an agent.
    pub(crate) fn enrol(&self, credential: &str, body: &[u8]) -> Result<IssuedCertificate, EnrolmentError> {
        let invalid = |_| EnrolmentError::Token(TokenError::Malformed);
        let credential: TokenCredential = credential.parse().map_err(invalid)?;
        // A token whose use counts must not be lost because of a broken request.
        let key = requested_key(body)?;
        let agent = self.tokens.use_once(&credential, SystemTime::now()).map_err(|error| match error {
            TokenError::Store(error) => EnrolmentError::Issue(error.into()),
            error => EnrolmentError::Token(error),
        })?;
        let issued = self.issue(agent, &key)?;
        info!(agent = %issued.agent, token = credential.id, "issued a certificate for a join token");
        Ok(issued)
    }

    /// Issues a further certificate for an agent that has one.
    pub(crate) fn renew(&self, agent: &AgentId, body: &[u8]) -> Result<IssuedCertificate, EnrolmentError> {
        let issued = self.issue(agent.clone(), &requested_key(body)?)?;
        info!(%agent, "renewed a certificate");
        Ok(issued)
    }

    fn issue(&self, agent: AgentId, key: &RequestedKey) -> Result<IssuedCertificate, EnrolmentError> {
        let not_before = self.revocations.agent_revoked_before(&agent);
        let authority: Arc<Authority> = self.agent_ca.borrow();
        let certificate = authority
            .certify_client(key, agent.as_str(), self.lifetime, not_before)
            .inspect_err(|error| warn!(%agent, error = error as &dyn std::error::Error, "cannot issue a certificate"))
            .map_err(|error| EnrolmentError::Issue(error.into()))?;
        Ok(IssuedCertificate { agent, certificate, server_ca: self.server_ca() })
    }
}

fn requested_key(body: &[u8]) -> Result<RequestedKey, EnrolmentError> {
    let CertificateRequest { request } = CertificateRequest::decode(body).ok_or(EnrolmentError::Body)?;
    RequestedKey::verify(request.as_bytes()).map_err(EnrolmentError::Request)
}

#[cfg(test)]
mod tests {
    use ops::pki::{NewKey, certificates_from_pem};
    use ops::tls::ClientCa;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn enrolment(dir: &std::path::Path) -> Enrolment {
        let authority = |name| Watched::fixed(Authority::create(name, 30 * DAY).unwrap());
        Enrolment {
            tokens: Tokens::new(dir.to_owned()),
            agent_ca: authority("agents"),
            serving_ca: authority("servers"),
            revocations: Revocations::default(),
            lifetime: DAY,
        }
    }

    fn body() -> Vec<u8> {
        CertificateRequest { request: NewKey::create().unwrap().request }.encode()
    }

    #[test]
    fn a_token_is_worth_one_certificate_of_its_agent() {
        let dir = tempfile::tempdir().unwrap();
        let enrolment = enrolment(dir.path());
        let agent: AgentId = "site-a".parse().unwrap();
        let token = enrolment.tokens.create(&agent, DAY, 1, SystemTime::now()).unwrap().expose();
        // A request that cannot be answered costs nothing.
        assert!(matches!(enrolment.enrol(&token, b"{}"), Err(EnrolmentError::Body)));
        let bad = CertificateRequest { request: "x".to_owned() }.encode();
        assert!(matches!(enrolment.enrol(&token, &bad), Err(EnrolmentError::Request(_))));
        let issued = enrolment.enrol(&token, &body()).unwrap();
        assert_eq!(issued.agent, agent);
        let ca = ClientCa::from_pem(enrolment.agent_ca.borrow().certificate_pem().as_bytes()).unwrap();
        let chain = certificates_from_pem(issued.certificate.as_bytes()).unwrap();
        assert_eq!(ca.verify(&chain, SystemTime::now()).unwrap().common_name, "site-a");
        assert!(matches!(enrolment.enrol(&token, &body()), Err(EnrolmentError::Token(TokenError::Unknown))));
        assert!(matches!(enrolment.enrol("x.y", &body()), Err(EnrolmentError::Token(TokenError::Malformed))));
        assert_eq!(enrolment.renew(&agent, &body()).unwrap().agent, agent);
    }
}
