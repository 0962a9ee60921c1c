//! A TLS and HTTP/2 client for misbehavior: connections without requests, incomplete requests, and unread responses.

use std::future::{Future, pending};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Credentials;
use crate::route::DOMAIN;

/// Connects to endpoints, with or without a client certificate.
#[derive(Debug)]
pub struct Http2 {
    runtime: Runtime,
    tls: Arc<ClientConfig>,
    address: Ipv4Addr,
}

/// An HTTP/2 connection.
#[derive(Debug)]
pub struct Session {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

// === impl Http2 ===

impl Http2 {
    /// A client without credentials. `authority` must have signed the endpoint's certificate.
    pub fn anonymous(authority: &Path) -> anyhow::Result<Self> {
        Self::new(authority, |config| Ok(config.with_no_client_auth()))
    }

    /// A client with a certificate.
    pub fn with(credentials: &Credentials) -> anyhow::Result<Self> {
        Self::new(&credentials.authority, |config| {
            let chain = CertificateDer::pem_file_iter(&credentials.certificate)?.collect::<Result<_, _>>()?;
            Ok(config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&credentials.key)?)?)
        })
    }

    fn new(
        authority: &Path,
        authenticate: impl FnOnce(
            rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>,
        ) -> anyhow::Result<ClientConfig>,
    ) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = authenticate(config.with_root_certificates(roots))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { runtime, tls: Arc::new(config), address: Ipv4Addr::LOCALHOST })
    }

    /// Spawns a task on the runtime of this client.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.runtime.spawn(task)
    }

    /// The same client with another source address on loopback, because there are limits for each address.
    #[must_use]
    pub fn from(self, address: Ipv4Addr) -> Self {
        Self { address, ..self }
    }

    /// Runs a future on the runtime of this client.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// TLS to a cluster's endpoint at this port of loopback.
    pub async fn direct(&self, port: u16, cluster: &str) -> anyhow::Result<TlsStream<TcpStream>> {
        self.named(port, &format!("{cluster}.{DOMAIN}")).await
    }

    async fn named(&self, port: u16, name: &str) -> anyhow::Result<TlsStream<TcpStream>> {
        self.tls(self.tcp(port).await?, name, true).await
    }

    /// TLS to a cluster's endpoint, through the HTTP proxy (with TLS) at this port of loopback.
    pub async fn proxied(&self, port: u16, cluster: &str) -> anyhow::Result<TlsStream<TlsStream<TcpStream>>> {
        let mut proxy = self.tls(self.tcp(port).await?, "localhost", false).await?;
        let connect = format!("CONNECT {cluster}.{DOMAIN}:443 HTTP/1.1\r\nHost: {cluster}.{DOMAIN}:443\r\n\r\n");
        proxy.write_all(connect.as_bytes()).await?;
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            response.push(proxy.read_u8().await?);
        }
        ensure!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
        self.tls(proxy, &format!("{cluster}.{DOMAIN}"), true).await
    }

    /// A connection. `window` is the number of unread bytes that a stream may receive.
    pub async fn session(&self, port: u16, cluster: &str, window: u32) -> anyhow::Result<Session> {
        self.handshake(self.direct(port, cluster).await?, window).await
    }

    /// A connection to an API server at this port of loopback.
    pub async fn to_host(&self, port: u16) -> anyhow::Result<Session> {
        self.handshake(self.named(port, "localhost").await?, 1 << 20).await
    }

    async fn handshake(&self, stream: TlsStream<TcpStream>, window: u32) -> anyhow::Result<Session> {
        let mut builder = h2::client::Builder::new();
        let (requests, connection) = builder.initial_window_size(window).handshake(stream).await?;
        let driver = self.runtime.spawn(async move { drop(connection.await) });
        Ok(Session { requests, driver })
    }

    /// TCP to loopback.
    pub async fn tcp(&self, port: u16) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.address, 0).into())?;
        socket.set_nodelay(true)?;
        Ok(socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?)
    }

    async fn tls<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        name: &str,
        http2: bool,
    ) -> anyhow::Result<TlsStream<S>> {
        let mut config = ClientConfig::clone(&self.tls);
        if !http2 {
            config.alpn_protocols.clear();
        }
        let name = ServerName::try_from(name.to_owned())?;
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }
}

// === impl Session ===

impl Session {
    /// Sends the head of a request. A body follows unless `is_complete` is set.
    pub async fn send(
        &self,
        request: Request<()>,
        is_complete: bool,
    ) -> anyhow::Result<(ResponseFuture, SendStream<Bytes>)> {
        let mut requests = self.requests.clone().ready().await.context("the connection accepts no more streams")?;
        Ok(requests.send_request(request, is_complete)?)
    }

    /// Sends a complete request. Returns the status of the response, and the length of its body.
    pub async fn exchange(&self, request: Request<Bytes>) -> anyhow::Result<(u16, usize)> {
        let (head, body) = request.into_parts();
        let (answer, mut stream) = self.send(Request::from_parts(head, ()), body.is_empty()).await?;
        let uploaded = async {
            upload(&mut stream, body, true).await;
            pending().await
        };
        let answered = async {
            let answer = answer.await?;
            Ok((answer.status().as_u16(), read(answer.into_body()).await?))
        };
        // The response may arrive before the body is sent. Then the rest of the body is not needed.
        tokio::select! {
            result = answered => result,
            never = uploaded => never,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Sends a part of a body. Returns when it is sent, or when the stream has ended.
pub async fn upload(stream: &mut SendStream<Bytes>, mut part: Bytes, is_last: bool) {
    while !part.is_empty() {
        stream.reserve_capacity(part.len().min(64 * 1024));
        let Some(Ok(granted)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
        let chunk = part.split_to(granted.min(part.len()));
        if stream.send_data(chunk, is_last && part.is_empty()).is_err() {
            return;
        }
    }
}

/// Reads a body to its end. Returns its length.
pub async fn read(mut body: RecvStream) -> anyhow::Result<usize> {
    let mut length = 0;
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        length += chunk.len();
        body.flow_control().release_capacity(chunk.len())?;
    }
    Ok(length)
}

/// Waits until the peer closes a connection.
pub async fn ended(mut stream: impl AsyncRead + Unpin) {
    let mut bytes = [0; 1024];
    // An error also means that the connection is closed.
    while let Ok(1..) = stream.read(&mut bytes).await {}
}
