//! The HTTP client of the webhook: HTTP/1.1 over TLS, to the server of a kubeconfig.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kubeconfig::{ClientConfig, Credentials};
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::tls::{ALPN_HTTP1, TlsVersions, client_config};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::debug;

/// The time limit for a request, including the connection.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The part of a response that is read, so that the connection can be used again.
const MAX_RESPONSE: usize = 64 * 1024;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("proxy-server/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Where batches are sent.
pub(super) trait Post {
    /// Sends an `EventList`.
    fn post(&mut self, list: Bytes) -> impl Future<Output = Result<(), PostError>> + Send;
}

/// Sends to the webhook.
#[derive(Debug)]
pub(super) struct Client {
    kubeconfig: Watched<ClientConfig>,
    reloader: Reloader,
    tasks: Tasks,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// The kubeconfig with which it was opened.
    client_config: Arc<ClientConfig>,
    credentials: Credentials,
}

/// A batch was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig of the audit webhook cannot be used")]
    Kubeconfig(#[from] kubeconfig::OpenError),
    /// TCP or TLS failed.
    #[error("cannot connect to the audit webhook {address}")]
    Connect {
        /// The address.
        address: String,
        /// What failed.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the audit webhook broke")]
    Broken(#[from] hyper::Error),
    /// There was no response in time.
    #[error("the audit webhook did not respond in time")]
    Silent,
    /// The response is no success.
    #[error("the audit webhook responded with {0}")]
    Refused(StatusCode),
}

// === impl Client ===

impl Client {
    /// Opens no connection yet. Connections run as `tasks`.
    pub(super) fn new(kubeconfig: Watched<ClientConfig>, reloader: Reloader, tasks: Tasks) -> Self {
        Self { kubeconfig, reloader, tasks, connection: None }
    }

    async fn exchange(&mut self, list: Bytes) -> Result<(), PostError> {
        let client_config = self.kubeconfig.borrow();
        let kept = self.connection.take().filter(|connection| {
            !connection.sender.is_closed() && Arc::ptr_eq(&connection.client_config, &client_config)
        });
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.open(client_config).await?,
        };
        connection.sender.ready().await?;
        let response = connection.sender.send_request(connection.request(list)).await?;
        let status = response.status();
        // A renewed certificate is used from the next handshake on.
        if status != StatusCode::UNAUTHORIZED && is_short(response.into_body()).await? {
            self.connection = Some(connection);
        }
        if status.is_success() { Ok(()) } else { Err(PostError::Refused(status)) }
    }

    async fn open(&self, client_config: Arc<ClientConfig>) -> Result<Connection, PostError> {
        let failed = |source| PostError::Connect { address: client_config.server.to_string(), source };
        let (named, reloader) = (Arc::clone(&client_config), self.reloader.clone());
        // A file system that hangs must not block the runtime.
        let opened = tokio::task::spawn_blocking(move || named.open(&reloader)).await;
        let credentials = opened.map_err(|panic| failed(io::Error::other(panic)))??;
        let sender = self.connect(&client_config, &credentials).await.map_err(failed)?;
        Ok(Connection { sender, client_config, credentials })
    }

    async fn connect(
        &self,
        client_config: &ClientConfig,
        credentials: &Credentials,
    ) -> io::Result<SendRequest<Full<Bytes>>> {
        let address = &client_config.server;
        let socket = TcpStream::connect((address.host(), address.port())).await?;
        let (authorities, identity) = (credentials.authorities.clone(), credentials.identity.clone());
        let config = self::client_config(authorities, identity, &[ALPN_HTTP1], TlsVersions::Tls12And13);
        let name: ServerName<'static> = client_config.server_name.as_ref().unwrap_or(address.server_name()).clone();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Not until cancelled: when the process ends, the last events are still sent.
        self.tasks.spawn("audit webhook connection", async move {
            if let Err(error) = connection.await {
                debug!(%error, "the connection to an audit webhook broke");
            }
        });
        Ok(sender)
    }
}

impl Post for Client {
    async fn post(&mut self, list: Bytes) -> Result<(), PostError> {
        timeout(TIMEOUT, self.exchange(list)).await.unwrap_or(Err(PostError::Silent))
    }
}

/// Reads a body. Whether it is short enough to have been read as a whole.
async fn is_short(mut body: Incoming) -> Result<bool, hyper::Error> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, Bytes::len);
        if length > MAX_RESPONSE {
            return Ok(false);
        }
    }
    Ok(true)
}

// === impl Connection ===

impl Connection {
    fn request(&self, list: Bytes) -> Request<Full<Bytes>> {
        let address = &self.client_config.server;
        let mut request = Request::new(Full::new(list));
        *request.method_mut() = http::Method::POST;
        // The address was parsed from a URL, so both are valid. The webhook refuses a request to another path.
        *request.uri_mut() = address.prefix().parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(address.authority().as_str()) {
            headers.insert(HOST, host);
        }
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(USER_AGENT, AGENT);
        if let Some(bearer) = &self.credentials.bearer {
            headers.insert(AUTHORIZATION, bearer.borrow().header().clone());
        }
        request
    }
}
