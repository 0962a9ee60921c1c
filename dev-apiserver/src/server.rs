//! Connections: TLS with client certificates, HTTP/1.1 and HTTP/2. [`crate::serve`] responds to the requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use ops::drain::Tasks;
use ops::listen::Listener;
use ops::tls::{ALPN_H2, ALPN_HTTP1, ClientAuth, ClientCa, TlsVersions, server_config};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::api::Api;
use crate::{controllers, seed, serve};

/// The timeout of a TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout from an accepted connection, or the last response, to the head of the next request, as in kube-apiserver.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// The parts of a server.
#[derive(Debug)]
pub struct Options {
    /// The listener. Keep it on loopback.
    pub listener: Listener,
    /// The serving certificate.
    pub certificate: CertifiedKey,
    /// The authority that signed the serving certificate, in PEM: the content of `kube-root-ca.crt`.
    pub serving_ca: String,
    /// The authority that signs client certificates. Those with `O=system:masters` are allowed everything.
    pub client_ca: ClientCa,
}

/// A running server. It ends when its tasks are cancelled.
#[derive(Debug)]
pub struct DevApiserver {
    address: std::net::SocketAddr,
}

/// A running server without a listener, for tests in the same process. A clone is the same server.
#[derive(Clone, Debug)]
pub struct Unlistened(Arc<Api>);

/// The same certificate for all server names.
#[derive(Debug)]
struct Only(Arc<CertifiedKey>);

// === impl DevApiserver ===

impl DevApiserver {
    /// Creates the objects of a new cluster, and serves until `tasks` are cancelled. Clients can connect at once.
    pub fn start(options: Options, tasks: &Tasks) -> Self {
        let Options { listener, certificate, serving_ca, client_ca } = options;
        let address = listener.bound();
        let Unlistened(api) = Unlistened::start(client_ca, serving_ca, address, tasks);
        let resolver = Arc::new(Only(Arc::new(certificate)));
        let alpn = [ALPN_H2, ALPN_HTTP1];
        let config = server_config(resolver, ClientAuth::Requested, &alpn, TlsVersions::Tls12And13);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let accepting = tasks.clone();
        tasks.spawn("dev-apiserver listener", async move {
            let serve = |connection: ops::listen::Connection| {
                let (api, acceptor) = (Arc::clone(&api), acceptor.clone());
                async move {
                    serve_connection(&api, acceptor, connection.stream).await;
                    drop(connection.slot);
                }
            };
            listener.run(accepting, "dev-apiserver connection", serve).await;
        });
        Self { address }
    }

    /// The address on which it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }
}

// === impl Unlistened ===

impl Unlistened {
    /// Creates the objects of a new cluster. The parameters are those of [`Options`]; discovery shows `address`.
    pub fn start(client_ca: ClientCa, serving_ca: String, address: std::net::SocketAddr, tasks: &Tasks) -> Self {
        let api = Arc::new(Api::new(client_ca, serving_ca, address, tasks.clone()));
        seed::seed(&api.store);
        tasks.spawn("dev-apiserver controllers", controllers::run(Arc::clone(&api)));
        Self(api)
    }

    /// Serves HTTP/2 on a connection whose client has authenticated with this certificate chain.
    pub async fn serve<S>(&self, io: S, chain: Arc<[CertificateDer<'static>]>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        serve_requests(&self.0, io, chain, true).await;
    }
}

async fn serve_connection(api: &Arc<Api>, acceptor: TlsAcceptor, stream: TcpStream) {
    // Failure only increases latency.
    let _ = stream.set_nodelay(true);
    let stream = match timeout(TLS_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
        Err(_) => return debug!("TLS handshake timed out"),
    };
    let session = stream.get_ref().1;
    let chain: Arc<[_]> = session.peer_certificates().unwrap_or_default().to_vec().into();
    let is_h2 = session.alpn_protocol() == Some(ALPN_H2);
    serve_requests(api, stream, chain, is_h2).await;
}

async fn serve_requests<S>(api: &Arc<Api>, io: S, chain: Arc<[CertificateDer<'static>]>, is_h2: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (api, chain) = (Arc::clone(api), Arc::clone(&chain));
        async move { Ok::<_, Infallible>(serve::respond(&api, request, &chain).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(250).keep_alive_interval(Duration::from_secs(30));
    let builder = if is_h2 { builder.http2_only() } else { builder.http1_only() };
    let served = builder.serve_connection_with_upgrades(TokioIo::new(io), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = api.tasks.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        debug!(error, "connection failed");
    }
}

// === impl Only ===

impl ResolvesServerCert for Only {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
