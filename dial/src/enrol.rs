//! Certificates of this process: the first one for a join token, later ones for the previous certificate.
//!
//! See [`protocol::enrolment`] for the exchange. What is *not* here: files, and when to renew.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use ops::files::Watched;
use ops::pki::{self, NewKey, NewKeyError};
use ops::secret::Secret;
use ops::tls::{CaError, ServerCa, TlsVersions, client_config, unverified_client_config};
use protocol::enrolment::{
    CA_PATH, CertificateRequest, ENROL_PATH, IssuedCertificate, JoinToken, MAX_BODY, RENEW_PATH,
};
use protocol::{Authority, JsonBody as _, Refusal};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::connect::{self, Target};
use crate::egress::Egress;
use crate::error::DialError;
use crate::register::{broken, drive};

/// A new key with its certificate.
#[derive(Clone, Debug)]
pub struct Enrolled {
    /// In PEM, PKCS#8.
    pub key: Secret,
    /// What the proxy-server has issued.
    pub issued: IssuedCertificate,
}

/// Why this process gets no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The server requires a certificate, which this process does not have yet.
    #[error("{0} issues no certificates: its configuration has no section `enrolment`")]
    NoEnrolment(Authority),
    /// The CA of the server is not the one of the token.
    #[error("{0} is not the proxy-server that issued the join token: its CA has another digest")]
    OtherCa(Authority),
    /// The server has sent no CA, or one that cannot be used.
    #[error("the CA of the proxy-server cannot be used")]
    Ca(#[source] CaError),
    /// The proxy-server refused the request.
    #[error("the proxy-server issues no certificate ({reason:?}): {0}", reason = .0.reason)]
    Refused(Refusal),
    /// The response is something else.
    #[error("{0} did not send a certificate: is it `listeners.agents` of a proxy-server?")]
    NotAtoll(Authority),
    /// There was no response in time.
    #[error("no response within {} s", LIMIT.as_secs())]
    Silent,
    /// This process cannot create a key.
    #[error("cannot create a key")]
    Key(#[source] NewKeyError),
}

/// The time limit for a connection and one exchange.
const LIMIT: Duration = Duration::from_secs(20);

/// Gets the first certificate of an agent.
pub async fn join(token: &JoinToken, server: &Authority, egress: &Egress) -> Result<Enrolled, EnrolError> {
    // Nothing secret is sent before the digest in the token has proven the CA.
    let unverified = Arc::new(unverified_client_config(&[protocol::upgrade::ALPN]));
    let request = Request::get(CA_PATH).header(header::HOST, server.to_string()).body(Full::default());
    let body = exchange(&unverified, server, egress, request).await.map_err(|error| match error {
        EnrolError::Dial(DialError::Certificate(_)) => EnrolError::NoEnrolment(server.clone()),
        error => error,
    })?;
    // Only this certificate: whoever pretends to be the server may send others, too.
    let authority = pki::with_key_digest(&body, &token.ca_digest).ok_or_else(|| EnrolError::OtherCa(server.clone()))?;
    let authority = Watched::fixed(ServerCa::from_pem(authority.as_bytes()).map_err(EnrolError::Ca)?);
    let verified = client_config(authority, None, &[protocol::upgrade::ALPN], TlsVersions::Tls13);
    let bearer = format!("Bearer {}", token.credential.expose());
    certify(&Arc::new(verified), server, egress, (ENROL_PATH, Some(&bearer))).await
}

/// Gets another certificate for the identity in `tls`.
pub async fn renew(tls: &Arc<ClientConfig>, server: &Authority, egress: &Egress) -> Result<Enrolled, EnrolError> {
    certify(tls, server, egress, (RENEW_PATH, None)).await
}

/// Requests a certificate for a new key.
async fn certify(
    tls: &Arc<ClientConfig>,
    server: &Authority,
    egress: &Egress,
    (path, authorization): (&str, Option<&str>),
) -> Result<Enrolled, EnrolError> {
    let NewKey { key, request } = NewKey::create().map_err(EnrolError::Key)?;
    let body = CertificateRequest { request }.encode();
    let body = exchange(tls, server, egress, post(path, server, authorization, body)).await?;
    let issued = IssuedCertificate::decode(&body).ok_or_else(|| EnrolError::NotAtoll(server.clone()))?;
    Ok(Enrolled { key, issued })
}

/// A request with a JSON body.
pub(crate) fn post(
    path: &str,
    server: &Authority,
    authorization: Option<&str>,
    body: Vec<u8>,
) -> http::Result<Request<Full<Bytes>>> {
    let mut request =
        Request::post(path).header(header::HOST, server.to_string()).header(header::CONTENT_TYPE, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request.body(Full::from(body))
}

/// Connects, and sends one request. Returns the body of a successful response.
pub(crate) async fn exchange(
    tls: &Arc<ClientConfig>,
    server: &Authority,
    egress: &Egress,
    request: http::Result<Request<Full<Bytes>>>,
) -> Result<Bytes, EnrolError> {
    let request = request.expect("constant headers, a token of letters and a host:port are a request");
    let exchange = async {
        let stream = connect::stream(tls, egress, server, &Target::Named).await?;
        send(stream, request, server).await
    };
    let (status, body) = timeout(LIMIT, exchange).await.map_err(|_| EnrolError::Silent)??;
    if status != StatusCode::OK {
        return Err(EnrolError::Refused(Refusal::decode(status, &body)));
    }
    Ok(body)
}

async fn send<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    server: &Authority,
) -> Result<(StatusCode, Bytes), EnrolError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
        let body = body.map_err(|_| EnrolError::NotAtoll(server.clone()))?.to_bytes();
        Ok((status, body))
    };
    drive(connection, exchange).await
}
