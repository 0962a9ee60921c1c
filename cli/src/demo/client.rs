//! One request to an endpoint, by the way that a kubeconfig names.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use ops::files::Watched;
use ops::tls::{ALPN_HTTP1, Identity, ServerCa, TlsVersions, client_config};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Slice;
use super::files::{Files, Way, host_of};

/// For one request, which nothing but a host far away can make long.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The largest head of an answer to CONNECT, in bytes.
const MAX_HEAD: usize = 8 * 1024;

/// A virtual cluster's administrator, by one way.
pub(super) struct Client {
    slice: Slice,
    way: Way,
    port: u16,
    tls: TlsConnector,
}

// === impl Client ===

impl Client {
    /// What the kubeconfig for this cluster and this way says.
    pub(super) fn new(files: &Files, slice: Slice, way: Way) -> anyhow::Result<Self> {
        let administrator = files.administrator(slice);
        let ca = ServerCa::from_pem(files.serving_ca.as_bytes())?;
        let own = Identity::from_pem(administrator.certificate.as_bytes(), administrator.key.expose().as_bytes())?;
        let own = Some(Watched::fixed(own));
        let config = client_config(Watched::fixed(ca), own, &[ALPN_HTTP1], TlsVersions::Tls12And13);
        let port = match way {
            Way::Proxy => files.ports.proxy,
            Way::Direct => files.ports.endpoint,
        };
        Ok(Self { slice, way, port, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// The body of a 200; anything else is an error that says what came.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        timeout(PATIENCE, self.exchange(path)).await.context("no answer")?
    }

    async fn exchange(&self, path: &str) -> anyhow::Result<Bytes> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await.context("cannot connect")?;
        let (name, path) = match self.way {
            Way::Proxy => {
                connect(&mut socket, self.slice).await?;
                (host_of(self.slice), path.to_owned())
            }
            Way::Direct => ("127.0.0.1".to_owned(), format!("/clusters/{}{path}", self.slice.name)),
        };
        let server = ServerName::try_from(name.clone())?;
        let stream = self.tls.connect(server, socket).await.context("TLS failed")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::get(path)
            .header(header::HOST, name)
            .header(header::ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!(error)).context("the answer broke off")?.to_bytes();
            ensure!(status.is_success(), "{status}: {}", message(&body));
            Ok(body)
        };
        tokio::select! {
            answer = exchange => answer,
            ended = connection => bail!("the connection ended: {ended:?}"),
        }
    }
}

/// Byte by byte, since the first byte after the head belongs to TLS.
async fn connect(socket: &mut TcpStream, slice: Slice) -> anyhow::Result<()> {
    let host = host_of(slice);
    socket.write_all(format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < MAX_HEAD, "the proxy's answer has no end");
        head.push(socket.read_u8().await.context("the proxy closed the connection")?);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default();
    ensure!(line.split(' ').nth(1) == Some("200"), "the proxy answered {line}");
    Ok(())
}

/// What a Status says; of anything else the beginning.
fn message(body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).chars().take(200).collect(),
    }
}
