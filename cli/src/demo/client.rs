//! One request to an endpoint or to the host, on the route of a kubeconfig.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use ops::files::Watched;
use ops::pki::PemPair;
use ops::tls::{ALPN_HTTP1, Identity, ServerCa, TlsVersions, client_config};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::clusters::DemoCluster;
use super::files::{Files, Route};

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const JSON: &str = "application/json";
/// The maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;
/// The maximum size of the head of a response to CONNECT, in bytes.
const MAX_HEAD: usize = 8 * 1024;

/// A client certificate, and the route to the server that accepts it.
pub(super) struct Client {
    address: SocketAddr,
    /// The name that the server's certificate must have.
    host: String,
    /// Whether the route leads through an HTTP proxy.
    proxied: bool,
    /// The prefix of every path.
    prefix: String,
    tls: TlsConnector,
}

// === impl Client ===

impl Client {
    /// A client for the administrator of a virtual cluster, as in the kubeconfig for this cluster and this route.
    pub(super) fn administrator(files: &Files, cluster: DemoCluster, route: Route) -> anyhow::Result<Self> {
        let tls = connector(&files.serving_ca, files.administrator(cluster))?;
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(match route {
            Route::Proxy => {
                let address = at(files.ports.proxy);
                Self { address, host: cluster.host(), proxied: true, prefix: String::new(), tls }
            }
            Route::Direct => {
                let prefix = format!("/clusters/{}", cluster.name);
                Self { proxied: false, prefix, ..Self::direct(at(files.ports.endpoint), tls) }
            }
        })
    }

    /// A client for a user of an API server.
    pub(super) fn host(address: SocketAddr, ca: &str, own: &PemPair) -> anyhow::Result<Self> {
        Ok(Self::direct(address, connector(ca, own)?))
    }

    fn direct(address: SocketAddr, tls: TlsConnector) -> Self {
        Self { address, host: address.ip().to_string(), proxied: false, prefix: String::new(), tls }
    }

    /// The body of a 200 response. Any other response is an error that describes it.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Creates an object.
    pub(super) async fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        self.send(Method::POST, path, object.to_string().into()).await?;
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        timeout(REQUEST_TIMEOUT, self.exchange(method, path, body)).await.context("no response")?
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let mut socket = TcpStream::connect(self.address).await.context("cannot connect")?;
        if self.proxied {
            connect(&mut socket, &self.host).await?;
        }
        let server = ServerName::try_from(self.host.clone())?;
        let stream = self.tls.connect(server, socket).await.context("TLS failed")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(header::HOST, &self.host)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, JSON)
            .body(Full::new(body))?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
            let body = body
                .map_err(|error| anyhow::anyhow!(error))
                .context("the connection was closed during the response")?
                .to_bytes();
            ensure!(status.is_success(), "{status}: {}", message(&body));
            Ok(body)
        };
        tokio::select! {
            response = exchange => response,
            ended = connection => bail!("the connection was closed: {ended:?}"),
        }
    }
}

fn connector(ca: &str, own: &PemPair) -> anyhow::Result<TlsConnector> {
    let ca = ServerCa::from_pem(ca.as_bytes())?;
    let own = Identity::from_pem(own.certificate.as_bytes(), own.key.expose().as_bytes())?;
    let own = Some(Watched::fixed(own));
    let config = client_config(Watched::fixed(ca), own, &[ALPN_HTTP1], TlsVersions::Tls12And13);
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Opens a tunnel through the proxy. Reads byte by byte, because the first byte after the head belongs to TLS.
async fn connect(socket: &mut TcpStream, host: &str) -> anyhow::Result<()> {
    socket.write_all(format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < MAX_HEAD, "the head of the proxy's response is too long");
        head.push(socket.read_u8().await.context("the proxy closed the connection")?);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    ensure!(line.split(' ').nth(1) == Some("200"), "the proxy returned {line}");
    Ok(())
}

/// The message of a Status, or the beginning of any other body.
fn message(body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).chars().take(200).collect(),
    }
}
