//! A fast API server, so that measurements show the cost of the proxies. It serves one pod of 3.9 KB and lists of
//! megabytes from memory, over TLS with HTTP/1.1 or HTTP/2. It forwards all other requests to a host cluster, so that a
//! proxy-agent can work with it.
//!
//! Like kube-apiserver with `--client-ca-file`, it requests a client certificate and verifies it, so that new
//! connections cost the same on all routes. It ignores tokens.
//!
//! | request | response |
//! |---|---|
//! | the pod `bench-small` in any namespace | 3.9 KB, in that namespace |
//! | its log | 15.6 MB of text, for readers that do not read |
//! | pods by label `app=frontend` in a namespace | `--pods` of them, 15.6 MB if there are 4,000, all in that namespace |
//! | the same in all namespaces | the same number, of two virtual clusters in turns |
//!
//! Reading order: `memory` (responses from memory), `host` (forwarded requests).

mod host;
mod memory;

use std::convert::Infallible;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use ops::drain::Tasks;
use ops::files::{Existing, Secrecy, write};
use ops::listen::{Connection, ListenAddr, Listener};
use ops::pki::Authority;
use ops::tls::{ALPN_H2, ALPN_HTTP1, ClientAuth, ClientCa, TlsVersions, server_config};
use rustls::sign::SingleCertAndKey;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsAcceptor;

use host::HostCluster;
use memory::{MemoryResponse, MemoryResponses};

/// Serve pods from memory until Ctrl-C, and forward all other requests to a host cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write upstream-ca.crt here and, with --host, upstream.kubeconfig.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The listen address, on loopback. Port 0 picks a free port.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: ListenAddr,
    /// The number of pods in a list.
    #[arg(long, value_name = "N", default_value = "4000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pods: u32,
    /// The kubeconfig of the host cluster. Users of upstream.kubeconfig act as its user there.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
    /// PEM: request client certificates, and verify them against this CA. Clients without a certificate are served too.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
}

type Body = Either<Full<Bytes>, Incoming>;

/// The shared state of all connections.
struct Upstream {
    memory: MemoryResponses,
    host: Option<HostCluster>,
    client_ca: Option<ClientCa>,
}

/// The lifetime of certificates.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let tasks = Tasks::new();
    let (url, accepting) = open(&args, &tasks).await?;
    writeln!(out, "serving {url}\nready")?;
    out.flush()?;
    tokio::select! {
        () = accepting => {}
        signal = ops::drain::signal() => drop(signal.context("cannot handle signals")?),
    }
    tasks.drain(Duration::from_secs(1), std::future::pending::<()>()).await;
    Ok(())
}

/// Binds the listener, and writes the files for clients. The future accepts connections.
pub(crate) async fn open(
    args: &Args,
    tasks: &Tasks,
) -> anyhow::Result<(String, impl Future<Output = ()> + Send + 'static)> {
    ensure!(args.listen.is_loopback(), "{} is not on loopback", args.listen);
    let host = args.host.as_deref().map(|file| HostCluster::open(file, tasks.clone())).transpose()?;
    let authority = Authority::create("bench upstream", LIFETIME)?;
    let names = ["localhost", "127.0.0.1"].map(|name| ServerName::try_from(name).expect("a name and an address"));
    let certificate = SingleCertAndKey::from(authority.issue_server(&names, LIFETIME)?);
    let alpn = [ALPN_H2, ALPN_HTTP1];
    let client_ca = args.client_ca.as_deref().map(client_ca).transpose()?;
    let auth = if client_ca.is_some() { ClientAuth::Requested } else { ClientAuth::None };
    let config = server_config(Arc::new(certificate), auth, &alpn, TlsVersions::Tls12And13);
    let listener = Listener::bind(&args.listen, CONNECTIONS).await?;

    let url = format!("https://{}", listener.bound());
    let ca = authority.certificate_pem();
    write(&args.dir.join("upstream-ca.crt"), ca.as_bytes(), Secrecy::Public, Existing::Replace)?;
    if let Some(host) = &host {
        let kubeconfig = host.kubeconfig(&url, ca);
        write(&args.dir.join("upstream.kubeconfig"), kubeconfig.as_bytes(), Secrecy::Secret, Existing::Replace)?;
    }
    let shared = Arc::new(Upstream { memory: MemoryResponses::new(args.pods as usize), host, client_ca });
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serve = move |connection| serve(Arc::clone(&shared), acceptor.clone(), connection);
    Ok((url, listener.run(tasks.clone(), "upstream", serve)))
}

fn client_ca(file: &Path) -> anyhow::Result<ClientCa> {
    let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    ClientCa::from_pem(&pem).with_context(|| file.display().to_string())
}

async fn serve(shared: Arc<Upstream>, acceptor: TlsAcceptor, connection: Connection) {
    let Connection { stream, slot: _slot, .. } = connection;
    // Ignore errors of connections, because the client counts its errors.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = acceptor.accept(stream).await else { return };
    if !shared.accepts(stream.get_ref().1.peer_certificates()) {
        return;
    }
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.respond(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(4_096)
        .initial_connection_window_size(64 << 20)
        .max_send_buf_size(1 << 20);
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

// === impl Upstream ===

impl Upstream {
    /// Whether the client CA has signed this certificate. A client without a certificate is accepted.
    fn accepts(&self, chain: Option<&[CertificateDer<'_>]>) -> bool {
        match (&self.client_ca, chain) {
            (Some(ca), Some(chain)) => ca.verify(chain, SystemTime::now()).is_ok(),
            _ => true,
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(MemoryResponse { body, media_type }) = self.memory.get(request.method(), request.uri()) {
            return respond(StatusCode::OK, body, media_type);
        }
        let Some(host) = &self.host else {
            return respond(StatusCode::NOT_FOUND, Bytes::from_static(b"{}"), "application/json");
        };
        match host.forward(request).await {
            Ok(response) => response.map(Either::Right),
            Err(error) => respond(StatusCode::BAD_GATEWAY, Bytes::from(format!("{error:#}")), "text/plain"),
        }
    }
}

fn respond(status: StatusCode, body: Bytes, media_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(media_type));
    response
}
