//! The registration: the HTTP/1.1 request with which an agent opens a tunnel.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use protocol::enrolment::RENEW_PATH;
use protocol::registration::MAX_REGISTRATION;
use protocol::upgrade::{ACCEPTANCE, PATH, PROTOCOL};
use protocol::user_certificate::USER_PATH;
use protocol::{Acceptance, AgentId, ProtocolVersion, Refusal, RefusalReason};
use tracing::{debug, warn};

use super::enrol::{answer, answer_agent, answer_for_user};
use super::refused::refused;
use crate::enrolment::{Enrolment, EnrolmentError};
use crate::grants::Grants;
use crate::registry::Registry;
use crate::revocations::{CertificateId, Revocations};
use crate::user_certificates::UserCertificates;

/// What all registrations share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) registry: Arc<Registry>,
    /// The clusters that agents may add.
    pub(super) grants: Option<Arc<Grants>>,
    /// The instance of this process.
    pub(super) server_id: Arc<str>,
    /// The domain of the endpoints of clusters.
    pub(super) domain: Arc<str>,
    pub(super) enrolment: Option<Arc<Enrolment>>,
    pub(super) user_certificates: Option<UserCertificates>,
    pub(super) revocations: Revocations,
}

/// Responds to the registration, and keeps it if it is accepted.
#[derive(Clone)]
pub(super) struct Registration {
    shared: Shared,
    agent: AgentId,
    /// Whether the agent is another proxy-server.
    is_peer: bool,
    certificate: CertificateId,
    /// When the certificate expires.
    valid_until: SystemTime,
    outcome: Arc<Mutex<Option<(OnUpgrade, Accepted)>>>,
}

/// A registration that was accepted with 101.
pub(super) struct Accepted {
    pub(super) agent: AgentId,
    pub(super) registration: protocol::Registration,
}

// === impl Registration ===

impl Registration {
    pub(super) fn new(
        shared: Shared,
        agent: AgentId,
        is_peer: bool,
        (certificate, valid_until): (CertificateId, SystemTime),
    ) -> Self {
        Self { shared, agent, is_peer, certificate, valid_until, outcome: Arc::default() }
    }

    /// Whether the operator has revoked the certificate of the agent.
    fn is_revoked(&self) -> bool {
        self.shared.revocations.revokes_agent(&self.agent, &self.certificate)
    }

    pub(super) fn service(
        &self,
    ) -> impl hyper::service::HttpService<
        Incoming,
        ResBody = Full<Bytes>,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<> {
        let this = self.clone();
        service_fn(move |request| {
            let this = this.clone();
            async move { Ok(this.answer(request).await) }
        })
    }

    pub(super) fn outcome(&self) -> Option<(OnUpgrade, Accepted)> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == RENEW_PATH && !self.is_revoked() {
            if self.is_peer {
                return answer(Err(EnrolmentError::Peer), Some(&self.agent));
            }
            return answer_agent(request, &self.agent, &self.certificate, self.shared.enrolment.as_deref()).await;
        }
        if request.uri().path() == USER_PATH && request.method() == Method::POST && !self.is_revoked() {
            let certificates = self.shared.user_certificates.as_ref().filter(|_| !self.is_peer);
            return answer_for_user(request, &self.agent, (&self.certificate, self.valid_until), certificates).await;
        }
        let upgrade = hyper::upgrade::on(&mut request);
        match self.decide(request).await {
            Ok(registration) => {
                let accepted = Accepted { agent: self.agent.clone(), registration };
                *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, accepted));
                self.switching()
            }
            Err(refusal) => {
                if refusal.reason == RefusalReason::Itself {
                    debug!("this process has dialled itself");
                } else {
                    warn!(agent = %self.agent, reason = ?refusal.reason, %refusal, "registration refused");
                }
                refused(&refusal)
            }
        }
    }

    async fn decide(&self, request: Request<Incoming>) -> Result<protocol::Registration, Refusal> {
        let malformed = |why: &str| Refusal::new(RefusalReason::Malformed, why);
        let upgrades = request.headers().get(header::UPGRADE).is_some_and(|token| token == PROTOCOL);
        let is_ours = [PATH, RENEW_PATH, USER_PATH].contains(&request.uri().path());
        if self.is_revoked() && is_ours {
            let why = format!("the certificate of agent {} is revoked; install a new one at the site", self.agent);
            return Err(Refusal::new(RefusalReason::Revoked, why));
        }
        if request.method() != Method::POST || request.uri().path() != PATH || !upgrades {
            return Err(malformed("this is the agents' listener of an Atoll proxy-server; clients use another port"));
        }
        let body = Limited::new(request.into_body(), MAX_REGISTRATION).collect().await;
        let body = body.map_err(|_| malformed("the registration is incomplete or too large"))?.to_bytes();
        let registration = protocol::Registration::decode(&body)?;
        ProtocolVersion::CURRENT
            .accepts(registration.protocol)
            .map_err(|err| Refusal::new(RefusalReason::Incompatible, err.to_string()))?;
        if registration.agent != self.agent {
            let why = format!(
                "the registration is for agent {}, the certificate for {}: check the agent's identity files",
                registration.agent, self.agent
            );
            return Err(Refusal::new(RefusalReason::IdentityMismatch, why));
        }
        if !self.is_peer {
            if let Some(grants) = &self.shared.grants {
                grants.admit(&self.agent, &registration.clusters).await;
            }
            self.shared.registry.check(&self.agent, &registration.clusters)?;
        } else if *registration.instance == *self.shared.server_id {
            return Err(Refusal::new(RefusalReason::Itself, "this proxy-server has dialled itself"));
        }
        Ok(registration)
    }

    fn switching(&self) -> Response<Full<Bytes>> {
        let Shared { server_id, domain, .. } = &self.shared;
        let domain = Some(domain.to_string());
        let acceptance = Acceptance { protocol: ProtocolVersion::CURRENT, server: server_id.to_string(), domain };
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
        let value = HeaderValue::try_from(acceptance.encode()).expect("JSON of ASCII strings is a header value");
        headers.insert(ACCEPTANCE, value);
        response
    }
}
