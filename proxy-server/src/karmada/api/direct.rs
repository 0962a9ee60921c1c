//! Requests to an API server of a kubeconfig: one HTTP/2 connection, opened on demand.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kubeconfig::{ClientConfig, Credentials};
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::tls::{self, ALPN_H2, TlsVersions};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::{Route, RouteError, collect};

/// The time limit for TCP, TLS and the HTTP/2 handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum age of a connection. The next one uses changed credentials, and a load balancer may send it elsewhere.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The interval of HTTP/2 pings, which detect a dead connection.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Reaches the API server of a kubeconfig, which is reloaded.
pub struct Direct {
    client_config: Watched<ClientConfig>,
    reloader: Reloader,
    tasks: Tasks,
    connection: Mutex<Option<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// The kubeconfig with which it was opened.
    client_config: Arc<ClientConfig>,
    credentials: Credentials,
    since: Instant,
}

// === impl Direct ===

impl Direct {
    /// Opens no connection yet. Connections run as `tasks`.
    pub fn new(client_config: Watched<ClientConfig>, reloader: Reloader, tasks: Tasks) -> Self {
        Self { client_config, reloader, tasks, connection: Mutex::new(None) }
    }

    /// The connection. Opens another one if it has ended, is too old, or the kubeconfig has changed.
    async fn connected(&self) -> Result<(SendRequest<Full<Bytes>>, Arc<ClientConfig>, Credentials), RouteError> {
        let mut held = self.connection.lock().await;
        let client_config = self.client_config.borrow();
        let is_good = |connection: &Connection| {
            let is_young = connection.since.elapsed() < MAX_AGE;
            is_young && !connection.sender.is_closed() && Arc::ptr_eq(&connection.client_config, &client_config)
        };
        if !held.as_ref().is_some_and(is_good) {
            *held = None;
            *held = Some(self.open(client_config).await?);
        }
        let connection = held.as_ref().expect("it was just opened");
        Ok((connection.sender.clone(), Arc::clone(&connection.client_config), connection.credentials.clone()))
    }

    async fn open(&self, client_config: Arc<ClientConfig>) -> Result<Connection, RouteError> {
        let (named, reloader) = (Arc::clone(&client_config), self.reloader.clone());
        // A file system that hangs must not block the runtime.
        let opened = tokio::task::spawn_blocking(move || named.open(&reloader)).await;
        let credentials = opened.map_err(|panic| RouteError::Broken(panic.into()))??;
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        let connecting = timeout(CONNECT_TIMEOUT, self.connect(&client_config, &credentials)).await;
        let sender = connecting
            .unwrap_or_else(|_| Err(silent()))
            .map_err(|source| RouteError::Connect { address: client_config.server.to_string(), source })?;
        Ok(Connection { sender, client_config, credentials, since: Instant::now() })
    }

    async fn connect(
        &self,
        client_config: &ClientConfig,
        credentials: &Credentials,
    ) -> io::Result<SendRequest<Full<Bytes>>> {
        let address = &client_config.server;
        let socket = TcpStream::connect((address.host(), address.port())).await?;
        socket.set_nodelay(true)?;
        let (authorities, identity) = (credentials.authorities.clone(), credentials.identity.clone());
        let config = tls::client_config(authorities, identity, &[ALPN_H2], TlsVersions::Tls12And13);
        let name: ServerName<'static> = client_config.server_name.as_ref().unwrap_or(address.server_name()).clone();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
        if stream.get_ref().1.alpn_protocol() != Some(ALPN_H2) {
            return Err(io::Error::other("the server does not support HTTP/2"));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).keep_alive_interval(PING_INTERVAL);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        self.tasks.spawn_until_cancelled("API connection", async move {
            if let Err(error) = connection.await {
                debug!(%error, "the connection to an API server broke");
            }
        });
        Ok(sender)
    }
}

impl Route for Direct {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, RouteError> {
        let (mut sender, client_config, credentials) = self.connected().await?;
        let broken = |error: hyper::Error| RouteError::Broken(error.into());
        sender.ready().await.map_err(broken)?;
        let mut request = request.map(Full::new);
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let address = &client_config.server;
        let uri = Uri::builder().scheme("https").authority(address.authority().clone());
        let uri = uri.path_and_query(format!("{}{path}", address.prefix())).build();
        *request.uri_mut() = uri.map_err(|error| RouteError::Broken(error.into()))?;
        *request.version_mut() = Version::HTTP_2;
        if let Some(bearer) = &credentials.bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.borrow().header().clone());
        }
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        if parts.status == http::StatusCode::UNAUTHORIZED {
            // A renewed certificate is used from the next handshake on.
            *self.connection.lock().await = None;
        }
        Ok(Response::from_parts(parts, collect(body).await?))
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("server", &self.client_config.borrow().server).finish_non_exhaustive()
    }
}
