//! An HTTPS client for the endpoints of issuers: few and small responses, so each request has a connection of its own.
//!
//! It follows no redirect, so a token or a key comes only from the URL that the issuer has named.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ops::files::Watched;
use ops::tls::{ALPN_HTTP1, ServerCa, TlsVersions, client_config};
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

use crate::url::HttpsUrl;

/// The time limit for a request, from the look-up of the name to the end of the response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a response, in bytes. The keys of large issuers have some ten kilobytes.
const MAX_RESPONSE: usize = 512 * 1024;

/// A client that trusts certain authorities. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    tls: Arc<ClientConfig>,
}

/// There is no response, or it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// TCP or TLS failed.
    #[error("cannot connect to {host}")]
    Connect {
        /// The host and the port.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// HTTP failed.
    #[error("the connection broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No complete response in time.
    #[error("no complete response within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The response is too large.
    #[error("the response is larger than {} KiB", MAX_RESPONSE / 1024)]
    TooLarge,
    /// The response has another status than expected.
    #[error("the response has the status {0}")]
    Status(StatusCode),
    /// The response is not the expected JSON. Its content may be secret, so only the kind of the mistake is known.
    #[error("the response is not the expected JSON")]
    Json,
}

// === impl Client ===

impl Client {
    /// A client that trusts these authorities, which may change.
    pub fn new(authorities: Watched<ServerCa>) -> Self {
        Self { tls: Arc::new(client_config(authorities, None, &[ALPN_HTTP1], TlsVersions::Tls12And13)) }
    }

    /// Reads a JSON document.
    pub async fn get<T: DeserializeOwned>(&self, url: &HttpsUrl) -> Result<T, HttpError> {
        let response = self.send(Method::GET, url, None, Bytes::new()).await?;
        match response.status() {
            StatusCode::OK => serde_json::from_slice(response.body()).map_err(|_| HttpError::Json),
            status => Err(HttpError::Status(status)),
        }
    }

    /// Posts a form (the serializer of `application/x-www-form-urlencoded` in the URL standard), with HTTP Basic
    /// authentication if credentials are given.
    pub async fn post(
        &self,
        url: &HttpsUrl,
        form: &[(&str, &str)],
        authorization: Option<HeaderValue>,
    ) -> Result<Response<Bytes>, HttpError> {
        self.send(Method::POST, url, authorization, encode_form(form).into()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &HttpsUrl,
        authorization: Option<HeaderValue>,
        body: Bytes,
    ) -> Result<Response<Bytes>, HttpError> {
        let request = request(method, url, authorization, body)?;
        timeout(TIMEOUT, self.exchange(url, request)).await.unwrap_or(Err(HttpError::Timeout))
    }

    async fn exchange(&self, url: &HttpsUrl, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, HttpError> {
        let (host, port) = url.address();
        let failed = |source| HttpError::Connect { host: format!("{host}:{port}"), source };
        let socket = TcpStream::connect((host, port)).await.map_err(failed)?;
        let tls = TlsConnector::from(Arc::clone(&self.tls));
        let stream = tls.connect(url.server_name(), socket).await.map_err(failed)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let response = async move {
            let (parts, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
            let body = Limited::new(body, MAX_RESPONSE).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() { HttpError::TooLarge } else { HttpError::Broken(error) }
            })?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        // The connection ends after the response. An error of it is that of the response, too.
        let (_, response) = tokio::join!(connection, response);
        response
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

fn request(
    method: Method,
    url: &HttpsUrl,
    authorization: Option<HeaderValue>,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, HttpError> {
    let target = url.uri().path_and_query().map_or("/", |path| path.as_str());
    let authority = url.uri().authority().map_or("", |authority| authority.as_str());
    let is_post = method == Method::POST;
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, authority)
        .header(ACCEPT, "application/json")
        .header(CONNECTION, "close");
    if is_post {
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    if let Some(mut authorization) = authorization {
        authorization.set_sensitive(true);
        request = request.header(AUTHORIZATION, authorization);
    }
    request.body(Full::new(body)).map_err(|error| HttpError::Broken(error.into()))
}

fn broken(error: hyper::Error) -> HttpError {
    HttpError::Broken(error.into())
}

/// A form as the body of a request, or as the query of a URL.
pub fn encode_form(form: &[(&str, &str)]) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::new();
    for (name, value) in form {
        for (separator, part) in [(if text.is_empty() { "" } else { "&" }, name), ("=", value)] {
            text.push_str(separator);
            for byte in part.bytes() {
                match byte {
                    b' ' => text.push('+'),
                    byte if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => text.push(char::from(byte)),
                    byte => {
                        text.push('%');
                        text.push(char::from(HEX[usize::from(byte >> 4)]));
                        text.push(char::from(HEX[usize::from(byte & 15)]));
                    }
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_as_browsers_do() {
        let form = [("scope", "openid groups"), ("code", "a&b=c+d/é"), ("plain", "A-z_0.9*~")];
        assert_eq!(encode_form(&form), "scope=openid+groups&code=a%26b%3Dc%2Bd%2F%C3%A9&plain=A-z_0.9*%7E");
        assert_eq!(encode_form(&[]), "");
    }
}
