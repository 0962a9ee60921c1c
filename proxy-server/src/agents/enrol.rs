//! The requests of agents for certificates: see [`protocol::enrolment`].

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use protocol::enrolment::{CA_PATH, ENROL_PATH, IssuedCertificate, MAX_BODY};
use protocol::{AgentId, Refusal, RefusalReason};
use tracing::warn;

use super::refused::refused;
use crate::enrolment::{Enrolment, EnrolmentError};

/// Answers a client without a certificate.
pub(super) async fn answer_stranger(request: Request<Incoming>, enrolment: &Enrolment) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, CA_PATH) => with_type(enrolment.server_ca().into(), "application/x-pem-file"),
        (&Method::POST, ENROL_PATH) => {
            let credential = bearer(&request).unwrap_or_default().to_owned();
            let issued = match body(request).await {
                Ok(body) => enrolment.enrol(&credential, &body),
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

/// Answers an agent that has a certificate.
pub(super) async fn answer_agent(
    request: Request<Incoming>,
    agent: &AgentId,
    enrolment: Option<&Enrolment>,
) -> Response<Full<Bytes>> {
    let Some(enrolment) = enrolment else {
        let why = "this proxy-server does not issue certificates (`enrolment` in its configuration)";
        return refused(&Refusal::new(RefusalReason::NotGranted, why));
    };
    let issued = match body(request).await {
        Ok(body) => enrolment.renew(agent, &body),
        Err(error) => Err(error),
    };
    answer(issued, Some(agent))
}

fn answer(issued: Result<IssuedCertificate, EnrolmentError>, agent: Option<&AgentId>) -> Response<Full<Bytes>> {
    match issued {
        Ok(issued) => with_type(issued.encode().into(), "application/json"),
        Err(error) => {
            let agent = agent.map(tracing::field::display);
            warn!(agent, error = &error as &dyn std::error::Error, "no certificate issued");
            let reason = match error {
                EnrolmentError::Token(_) => RefusalReason::NotGranted,
                EnrolmentError::Body | EnrolmentError::Request(_) => RefusalReason::Malformed,
                EnrolmentError::Issue(_) => RefusalReason::Unavailable,
            };
            refused(&Refusal::new(reason, error.to_string()))
        }
    }
}

async fn body(request: Request<Incoming>) -> Result<Bytes, EnrolmentError> {
    let body = Limited::new(request.into_body(), MAX_BODY).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|_| EnrolmentError::Body)
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
