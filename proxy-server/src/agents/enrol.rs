//! The requests of agents for certificates: see [`protocol::enrolment`] and [`protocol::user_certificate`].

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use ops::log::chain;
use protocol::enrolment::{CA_PATH, ENROL_PATH, IssuedCertificate, MAX_BODY, TokenCredential};
use protocol::user_certificate::UserCertificate;
use protocol::{AgentId, JsonBody as _, Refusal, RefusalReason};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::refused::refused;
use crate::enrolment::tokens::TokenError;
use crate::enrolment::{Enrolment, EnrolmentError};
use crate::revocations::CertificateId;
use crate::user_certificates::{UserCertificateError, UserCertificates};

/// Answers a client without a certificate.
pub(super) async fn answer_stranger(request: Request<Incoming>, enrolment: &Arc<Enrolment>) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, CA_PATH) => with_type(enrolment.server_ca().into(), "application/x-pem-file"),
        (&Method::POST, ENROL_PATH) => {
            // The body of a request without a token is not read.
            let credential = bearer(&request).and_then(|credential| credential.parse().ok());
            let issued = match credential.ok_or(EnrolmentError::Token(TokenError::Malformed)) {
                Ok(credential) => enrol(request, credential, enrolment).await,
                Err(error) => Err(error),
            };
            answer(issued, None)
        }
        _ => refused(&Refusal::new(
            RefusalReason::Malformed,
            "this listener of an Atoll proxy-server requires the certificate of an agent; clients use another port",
        )),
    }
}

/// Issues a certificate for a token. The worker must not wait for files, because it serves all its other connections.
async fn enrol(
    request: Request<Incoming>,
    credential: TokenCredential,
    enrolment: &Arc<Enrolment>,
) -> Result<IssuedCertificate, EnrolmentError> {
    let body = body(request).await.ok_or(EnrolmentError::Body)?;
    let turn = Arc::clone(&enrolment.turns).acquire_owned().await.expect("nobody closes it");
    let enrolment = Arc::clone(enrolment);
    let enrolled = spawn_blocking(move || {
        let _turn = turn;
        enrolment.enrol(&credential, &body)
    });
    enrolled.await.unwrap_or_else(|error| Err(EnrolmentError::Issue(error.into())))
}

/// Answers an agent that has a certificate.
pub(super) async fn answer_agent(
    request: Request<Incoming>,
    agent: &AgentId,
    certificate: &CertificateId,
    enrolment: Option<&Enrolment>,
) -> Response<Full<Bytes>> {
    let Some(enrolment) = enrolment else {
        let why = "this proxy-server does not issue certificates (`enrolment` in its configuration)";
        return refused(&Refusal::new(RefusalReason::NotGranted, why));
    };
    let issued = match body(request).await {
        Some(body) => enrolment.renew(agent, certificate, &body),
        None => Err(EnrolmentError::Body),
    };
    answer(issued, Some(agent))
}

/// Answers an agent that asks for the certificate of a user.
pub(super) async fn answer_for_user(
    request: Request<Incoming>,
    agent: &AgentId,
    certificate: (&CertificateId, SystemTime),
    certificates: Option<&UserCertificates>,
) -> Response<Full<Bytes>> {
    use UserCertificateError as E;
    match certify_user(request, agent, certificate, certificates).await {
        Ok(issued) => with_type(issued.encode().into(), "application/json"),
        Err(error) => {
            let source = &error as &dyn std::error::Error;
            warn!(%agent, error = source, "no certificate issued for a user");
            let reason = match error {
                E::Revoked => RefusalReason::Revoked,
                E::NoGrant | E::NotGranted(_) | E::NotAdded(..) | E::UserRevoked => RefusalReason::NotGranted,
                E::Body | E::User(_) | E::Request(_) => RefusalReason::Malformed,
                E::Store(_) | E::Issue(_) | E::Facts(_) | E::Ended => RefusalReason::Unavailable,
            };
            // The paths and the state of this process are for its own operator.
            let message = match reason {
                RefusalReason::Unavailable => {
                    "the proxy-server cannot issue the certificate; its log says why".to_owned()
                }
                _ => chain(&error).to_string(),
            };
            refused(&Refusal::new(reason, message))
        }
    }
}

async fn certify_user(
    request: Request<Incoming>,
    agent: &AgentId,
    (certificate, valid_until): (&CertificateId, SystemTime),
    certificates: Option<&UserCertificates>,
) -> Result<UserCertificate, UserCertificateError> {
    let certificates = certificates.ok_or(UserCertificateError::NoGrant)?;
    certificates.allow(agent)?;
    let body = body(request).await.ok_or(UserCertificateError::Body)?;
    let turn = Arc::clone(&certificates.turns).acquire_owned().await.expect("nobody closes it");
    let (certificates, agent, certificate) = (certificates.clone(), agent.clone(), certificate.clone());
    // The worker must not wait for files, because it serves all its other connections.
    let issued = spawn_blocking(move || {
        let _turn = turn;
        certificates.issue(&agent, (&certificate, valid_until), &body)
    });
    issued.await.unwrap_or(Err(UserCertificateError::Ended))
}

pub(super) fn answer(
    issued: Result<IssuedCertificate, EnrolmentError>,
    agent: Option<&AgentId>,
) -> Response<Full<Bytes>> {
    match issued {
        Ok(issued) => with_type(issued.encode().into(), "application/json"),
        Err(error) => {
            let agent = agent.map(tracing::field::display);
            warn!(agent, error = &error as &dyn std::error::Error, "no certificate issued");
            let reason = match error {
                EnrolmentError::Revoked => RefusalReason::Revoked,
                EnrolmentError::Token(_) | EnrolmentError::Peer => RefusalReason::NotGranted,
                EnrolmentError::Body | EnrolmentError::Request(_) => RefusalReason::Malformed,
                EnrolmentError::Issue(_) => RefusalReason::Unavailable,
            };
            refused(&Refusal::new(reason, error.to_string()))
        }
    }
}

/// Reads a body whose length is known. Many small chunks would need many times as much memory as their bytes.
async fn body(request: Request<Incoming>) -> Option<Vec<u8>> {
    let mut body = request.into_body();
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= MAX_BODY)?;
    let mut bytes = Vec::with_capacity(length);
    while let Some(frame) = body.frame().await {
        bytes.extend_from_slice(frame.ok()?.data_ref().map_or(&[], |data| data));
    }
    Some(bytes)
}

/// The credential of RFC 6750 section 2.1.
fn bearer(request: &Request<Incoming>) -> Option<&str> {
    request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn with_type(body: Bytes, media: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
