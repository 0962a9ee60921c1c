//! `atoll forward`: connects programs that know no HTTP proxies to a destination at a site.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::listen::ListenAddr;
use ops::tls::{ALPN_HTTP1, Identity, ServerCa, TlsVersions, client_config};
use protocol::destination::CLUSTER;
use protocol::{Authority, ClusterName};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional, join, stdin, stdout};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::invocation::Invocation;

/// The time limit for a connection to the proxy-server, and for the agent to reach the destination.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(40);

/// The maximum size of a refusal, in bytes.
const MAX_REFUSAL: usize = 8 * 1024;

/// Connect to a destination at the site of a cluster.
///
/// Without --listen, the command copies standard input to the destination, and the destination's bytes to standard output, as
/// ProxyCommand of ssh needs it. With --listen, it forwards each connection to this address until Ctrl-C.
///
/// `destinations` of the cluster in the configuration of the proxy-server, and `destinations` of the agent, must both contain
/// the destination.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Connect psql to a database at the site of branch-7\n  \
    atoll forward 10.2.0.7:5432 --listen 127.0.0.1:5432 --cluster branch-7 --proxy https://proxy.example.com:8090 \\\n      \
    --ca serving-ca.crt --certificate jane.crt --key jane.key\n  \
    psql --host 127.0.0.1\n\n  \
    # Open a shell on a machine of the site\n  \
    ssh -o ProxyCommand='atoll forward %h:%p --cluster branch-7 --proxy https://proxy.example.com:8090 \\\n      \
    --ca serving-ca.crt --certificate jane.crt --key jane.key' admin@10.2.0.9")]
pub(crate) struct Args {
    /// The address at the site: HOST:PORT.
    #[arg(value_name = "DESTINATION")]
    destination: Authority,
    /// The cluster at whose site the destination is.
    #[arg(long, value_name = "CLUSTER")]
    cluster: ClusterName,
    /// The HTTP proxy of the proxy-server: https://HOST:PORT.
    #[arg(long, value_name = "URL")]
    proxy: Uri,
    /// PEM: the CA of the proxy-server's certificate.
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// PEM: your certificate (`atoll certs client`).
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// PEM: the key of your certificate.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Listen at this address instead of using standard input and output. Must be on loopback.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<ListenAddr>,
}

/// How to reach the destination. Cheap to clone.
#[derive(Clone)]
struct Route {
    proxy: Authority,
    tls: TlsConnector,
    server_name: ServerName<'static>,
    cluster: ClusterName,
    destination: Authority,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let route = Route::new(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let done = runtime.block_on(async {
        if let Some(address) = &args.listen {
            return listen(address, &route, out).await;
        }
        let mut local = join(stdin(), stdout());
        route.forward(&mut local).await
    });
    // A thread may wait for standard input for ever.
    runtime.shutdown_background();
    done.map(|()| ExitCode::SUCCESS)
}

/// Forwards connections until Ctrl-C.
async fn listen(address: &ListenAddr, route: &Route, out: &mut dyn Write) -> anyhow::Result<()> {
    ensure!(
        address.is_loopback(),
        "{address} is not on loopback: everyone who can reach it could use your certificate"
    );
    let listener =
        TcpListener::bind(address.to_string()).await.with_context(|| format!("cannot listen on {address}"))?;
    let (bound, destination, cluster) = (listener.local_addr()?, &route.destination, &route.cluster);
    writeln!(out, "Forwarding from {bound} to {destination} at the site of {cluster}")?;
    out.flush()?;
    let tasks = Tasks::new();
    loop {
        let (mut socket, client) = tokio::select! {
            accepted = listener.accept() => accepted.context("cannot accept connections")?,
            signal = ops::drain::signal() => {
                signal.context("cannot handle signals")?;
                return Ok(());
            }
        };
        socket.set_nodelay(true)?;
        let route = route.clone();
        tasks.spawn_until_cancelled("forward", async move {
            if let Err(error) = route.forward(&mut socket).await {
                report(&format!("{client}: {error:#}"));
            }
        });
    }
}

#[expect(clippy::print_stderr, reason = "standard error is for the user")]
fn report(text: &str) {
    eprintln!("{} forward: {text}", Invocation::current().typed());
}

// === impl Route ===

impl Route {
    fn new(args: &Args) -> anyhow::Result<Self> {
        let proxy = &args.proxy;
        ensure!(
            proxy.scheme_str() == Some("https"),
            "--proxy must begin with https://, because you authenticate with a certificate"
        );
        let host = proxy.host().context("--proxy has no host")?;
        let port = proxy.port_u16().unwrap_or(443);
        let authority = format!("{host}:{port}").parse().with_context(|| format!("--proxy: {host}:{port}"))?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name = ServerName::try_from(name).context("--proxy: the host is neither a name nor an address")?;
        let ca = ServerCa::from_pem(&read(&args.ca)?).with_context(|| args.ca.display().to_string())?;
        let identity = Identity::from_pem(&read(&args.certificate)?, &read(&args.key)?)
            .with_context(|| args.certificate.display().to_string())?;
        let identity = Some(Watched::fixed(identity));
        let config = client_config(Watched::fixed(ca), identity, &[ALPN_HTTP1], TlsVersions::Tls12And13);
        let tls = TlsConnector::from(Arc::new(config));
        let (cluster, destination) = (args.cluster.clone(), args.destination.clone());
        Ok(Self { proxy: authority, tls, server_name, cluster, destination })
    }

    /// Copies in both directions until both have ended. An end in one direction is passed on.
    async fn forward(&self, local: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> anyhow::Result<()> {
        let remote =
            timeout(CONNECT_TIMEOUT, self.connect()).await.context("the proxy-server did not respond in time")??;
        copy_bidirectional(local, &mut TokioIo::new(remote)).await.context("the connection broke")?;
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<Upgraded> {
        let Self { proxy, destination, .. } = self;
        let socket = TcpStream::connect((proxy.host(), proxy.port()));
        let socket = socket.await.with_context(|| format!("cannot connect to {proxy}"))?;
        socket.set_nodelay(true)?;
        let stream = self.tls.connect(self.server_name.clone(), socket).await;
        let stream = stream.with_context(|| format!("TLS with {proxy} failed"))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::connect(destination.to_string())
            .header(http::header::HOST, destination.to_string())
            .header(CLUSTER, self.cluster.as_str())
            .body(Empty::<Bytes>::new())?;
        // The connection ends when it is handed over, or when nobody can send requests any more.
        let exchange = async move {
            let response = sender.send_request(request).await?;
            if response.status().is_success() {
                return Ok(hyper::upgrade::on(response).await?);
            }
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_REFUSAL).collect().await;
            let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).trim().to_owned());
            bail!("{status}: {}", text.unwrap_or_default())
        };
        let (connected, _) = tokio::join!(exchange, connection.with_upgrades());
        connected
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}
