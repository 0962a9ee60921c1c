//! Sends reviews to the host.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube_wire::Status;
use kube_wire::media::JSON;
use rewrite::HostNamespace;
use tokio::time::timeout;

use super::question::{Attributes, Decision, Reviews};
use super::review_error::ReviewError;
use super::rules::Rules;
use super::token_user::TokenUser;
use super::wire;
use crate::identity::HostUser;
use host_client::{Host, full};

/// The timeout of a review: the time that an API server waits for an authentication webhook
/// (`--authentication-token-webhook`).
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of an answer, in bytes. A list of rules has a few hundred bytes for each rule.
const MAX_RESPONSE: usize = 4 << 20;
/// The maximum length of the message of an error, in characters.
const MAX_MESSAGE: usize = 300;

// === impl Host ===

impl Reviews for Host {
    async fn token_review(&self, token: &str) -> Result<Option<TokenUser>, ReviewError> {
        let answer = post(self, wire::TOKEN_REVIEWS, HeaderMap::new(), wire::token_review(token)).await?;
        wire::token_user(&answer).map_err(unreadable)
    }

    async fn subject_access_review(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> Result<Decision, ReviewError> {
        let review = wire::access_review(user, attributes);
        let answer = post(self, wire::ACCESS_REVIEWS, HeaderMap::new(), review).await?;
        wire::decision(&answer).map_err(unreadable)
    }

    async fn rules_review(&self, user: &HostUser, namespace: &HostNamespace) -> Result<Rules, ReviewError> {
        let mut headers = HeaderMap::new();
        user.write(&mut headers);
        let answer = post(self, wire::RULES_REVIEWS, headers, wire::rules_review(namespace)).await?;
        wire::rules(&answer).map_err(unreadable)
    }
}

async fn post(host: &Host, path: &str, headers: HeaderMap, review: Vec<u8>) -> Result<Bytes, ReviewError> {
    timeout(REVIEW_TIMEOUT, answer(host, path, headers, review)).await.unwrap_or(Err(ReviewError::Silent))
}

async fn answer(host: &Host, path: &str, headers: HeaderMap, review: Vec<u8>) -> Result<Bytes, ReviewError> {
    let mut request = Request::new(full(review));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().expect("the paths of reviews are paths");
    *request.headers_mut() = headers;
    for name in [ACCEPT, CONTENT_TYPE] {
        request.headers_mut().insert(name, HeaderValue::from_static(JSON));
    }
    let response = host.send(request).await.map_err(|error| ReviewError::Host(Arc::new(error)))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
    let body = body.map_err(|error| ReviewError::Unreadable(Arc::from(error)))?.to_bytes();
    match status {
        StatusCode::OK | StatusCode::CREATED => Ok(body),
        status => {
            let message = Status::from_json(&body).map(|status| status.message).unwrap_or_default();
            let message: String = message.chars().take(MAX_MESSAGE).collect();
            Err(ReviewError::Refused { code: status.as_u16(), message: message.into() })
        }
    }
}

fn unreadable(error: serde_json::Error) -> ReviewError {
    ReviewError::Unreadable(Arc::new(error))
}
