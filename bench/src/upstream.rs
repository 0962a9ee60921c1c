//! An API server that is never the bottleneck: it serves one pod of 3.9 KB and lists of megabytes from memory, over TLS
//! and either version of HTTP, and passes everything else on to a host cluster, so that a proxy-agent can work with it.
//! What is measured through it is the proxies.
//!
//! It treats client certificates as kube-apiserver does (`--client-ca-file`): it requests one and verifies what it gets,
//! so that a new connection costs the direct route and the peers what it costs Atoll. It never looks at tokens.
//!
//! | asked for | answer |
//! |---|---|
//! | the pod `bench-small` in any namespace | 3.9 KB, in that namespace |
//! | its log | 15.6 MB of text: what readers open that stall |
//! | pods by label `app=frontend` in a namespace | `--pods` of them, 15.6 MB if there are 4,000, all in that namespace |
//! | the same in all namespaces | as many, of two virtual clusters in turn |
//!
//! Reading order: `answer` (what is served from memory), `host` (what is not).

mod answer;
mod host;

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

use answer::{Answer, Answers};
use host::HostCluster;

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

/// What all connections share.
struct Upstream {
    answers: Answers,
    host: Option<HostCluster>,
    client_ca: Option<ClientCa>,
}

const LIFETIME: Duration = Duration::from_secs(24 * 3600);
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let tasks = Tasks::new();
    let (url, accepting) = open(&args, &tasks).await?;
    writeln!(out, "serving {url}\nready")?;
    out.flush()?;
    tokio::select! {
        () = accepting => {}
        signal = ops::drain::signal() => drop(signal.context("signals")?),
    }
    tasks.drain(Duration::from_secs(1), std::future::pending::<()>()).await;
    Ok(())
}

/// Binds, and writes the files for clients. Connections are accepted while the future is polled.
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
    let shared = Arc::new(Upstream { answers: Answers::new(args.pods as usize), host, client_ca });
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
    // A client that goes away, here and below, is no news: it counts its own errors.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = acceptor.accept(stream).await else { return };
    if !shared.accepts(stream.get_ref().1.peer_certificates()) {
        return;
    }
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
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
    /// Whether a client may have this certificate, or none.
    fn accepts(&self, chain: Option<&[CertificateDer<'_>]>) -> bool {
        match (&self.client_ca, chain) {
            (Some(ca), Some(chain)) => ca.verify(chain, SystemTime::now()).is_ok(),
            _ => true,
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(Answer { body, media_type }) = self.answers.of(request.method(), request.uri()) {
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
