//! The client of a collector: OTLP over HTTP, in protobuf (the specification of OTLP, section "OTLP/HTTP").

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use ops::files::{LoadError, Reloader};
use ops::tls::{ServerCa, TlsVersions, client_config};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Endpoint, InvalidEndpoint, Tracing};

/// The time for one batch, as in the SDK (`OTEL_EXPORTER_OTLP_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum length of a response, in bytes. It contains at most a message.
const MAX_RESPONSE: usize = 64 * 1024;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("atoll/", env!("CARGO_PKG_VERSION")));

/// A collector. Each batch has its own connection: there is one every few seconds, and a collector may have several addresses.
pub(crate) struct Collector {
    endpoint: Endpoint,
    /// `None` for `http`.
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Traces cannot be exported with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL of the collector.
    #[error("tracing.endpoint")]
    Endpoint(#[from] InvalidEndpoint),
    /// The CA of the collector.
    #[error("tracing.serverCA")]
    ServerCa(#[from] LoadError),
}

/// The collector has not accepted a batch.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection, or it broke.
    #[error("cannot reach the collector")]
    Io(#[from] std::io::Error),
    /// No HTTP response.
    #[error("the collector does not respond by HTTP")]
    Http(#[from] hyper::Error),
    /// No response in time.
    #[error("the collector does not respond within {} s", TIMEOUT.as_secs())]
    Silent,
    /// A refusal.
    #[error("the collector responds with {0}")]
    Status(StatusCode),
}

// === impl SendError ===

impl SendError {
    /// Whether to send the batch again (the specification of OTLP, "Retryable Response Codes").
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Io(_) | Self::Http(_) | Self::Silent => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502..=504),
        }
    }
}

// === impl Collector ===

impl Collector {
    pub(crate) fn open(config: &Tracing, reloader: &Reloader) -> Result<Self, OpenError> {
        let endpoint = Endpoint::parse(&config.endpoint)?;
        let tls = match &config.server_ca {
            Some(file) if endpoint.is_tls => {
                let ca = reloader.watch([file.to_path_buf()], |[pem]| ServerCa::from_pem(pem))?;
                let tls = client_config(ca, None, &[b"http/1.1"], TlsVersions::Tls12And13);
                let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| InvalidEndpoint)?;
                Some((TlsConnector::from(Arc::new(tls)), name))
            }
            _ => None,
        };
        Ok(Self { endpoint, tls })
    }

    /// Sends a batch. Returns the number of spans that the collector has refused.
    pub(crate) async fn send(&self, batch: Bytes) -> Result<u64, SendError> {
        timeout(TIMEOUT, self.connect_and_send(batch)).await.unwrap_or(Err(SendError::Silent))
    }

    async fn connect_and_send(&self, batch: Bytes) -> Result<u64, SendError> {
        let stream = TcpStream::connect((self.endpoint.host.as_str(), self.endpoint.port)).await?;
        match &self.tls {
            Some((connector, name)) => self.send_over(connector.connect(name.clone(), stream).await?, batch).await,
            None => self.send_over(stream, batch).await,
        }
    }

    async fn send_over<S>(&self, stream: S, batch: Bytes) -> Result<u64, SendError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut exchange = pin!(async move {
            let response = sender.send_request(self.request(batch)).await?;
            let status = response.status();
            if status.is_success() { Ok(refused(response).await) } else { Err(SendError::Status(status)) }
        });
        tokio::select! {
            biased;
            sent = &mut exchange => sent,
            // The response may be complete nevertheless.
            _ = connection => exchange.await,
        }
    }

    fn request(&self, batch: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(batch));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.endpoint.path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(&self.endpoint.authority) {
            headers.insert(header::HOST, host);
        }
        headers.insert(header::CONTENT_TYPE, PROTOBUF);
        headers.insert(header::USER_AGENT, USER_AGENT);
        request
    }
}

/// The number of refused spans. A response that cannot be read is a success, too: its status says so.
async fn refused(response: Response<Incoming>) -> u64 {
    let Ok(body) = Limited::new(response.into_body(), MAX_RESPONSE).collect().await else { return 0 };
    let response = ExportTraceServiceResponse::decode(body.to_bytes()).unwrap_or_default();
    response.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
}
