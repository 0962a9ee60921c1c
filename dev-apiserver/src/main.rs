//! `dev-apiserver --dir DIR --port N`: a cluster in memory, and a kubeconfig of its administrator.
//!
//! Each start creates a new cluster with new certificates.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use dev_apiserver::{DevApiserver, Options, WARNING};
use ops::drain::{Signals, Tasks};
use ops::files::{Existing, Secrecy, write};
use ops::listen::Listener;
use ops::log::{Color, Format};
use ops::pki::Authority;
use ops::tls::ClientCa;
use rustls_pki_types::ServerName;

/// A Kubernetes API server in memory, for trials and tests. Never use it in production.
#[derive(Debug, Parser)]
#[command(name = "dev-apiserver", version)]
struct Cli {
    /// The folder in which to write host.kubeconfig.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The port on 127.0.0.1; 0 picks a free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

/// The lifetime of the certificates. No test server runs for longer.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// The time that requests in flight get to complete after a signal.
const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let mut signals = Signals::install()?;
    let _logging = ops::log::init(Format::Text, None, Color::Auto)?;
    warn();
    let address: ops::listen::ListenAddr = format!("127.0.0.1:{}", cli.port).parse()?;
    let listener = Listener::bind(&address, CONNECTIONS).await?;
    let authority = Authority::create("dev-apiserver", LIFETIME)?;
    let names = [ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into()), ServerName::try_from("localhost")?];
    let options = Options {
        certificate: authority.issue_server(&names, LIFETIME)?,
        serving_ca: authority.certificate_pem().to_owned(),
        client_ca: ClientCa::from_pem(authority.certificate_pem().as_bytes())?,
        listener,
    };
    let tasks = Tasks::new();
    let server = DevApiserver::start(options, &tasks);
    let kubeconfig = kubeconfig(&authority, server.address()).context("cannot create the kubeconfig")?;
    let path = cli.dir.join("host.kubeconfig");
    write(&path, kubeconfig.as_bytes(), Secrecy::Secret, Existing::Replace)?;
    tracing::info!(address = %server.address(), kubeconfig = %path.display(), "serving");
    let signal = signals.recv().await;
    tracing::info!(%signal, "shutting down");
    tasks.drain(DEADLINE, signals.recv()).await;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the warning is for the person at the terminal")]
fn warn() {
    eprintln!("{WARNING}");
}

/// The kubeconfig of an administrator, in JSON, which is also YAML.
fn kubeconfig(authority: &Authority, address: std::net::SocketAddr) -> anyhow::Result<String> {
    let admin = authority.issue_client("dev-admin", &["system:masters"], LIFETIME)?;
    let document = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dev", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": STANDARD.encode(authority.certificate_pem()),
        }}],
        "users": [{"name": "dev", "user": {
            "client-certificate-data": STANDARD.encode(&admin.certificate),
            "client-key-data": STANDARD.encode(admin.key.expose()),
        }}],
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}],
        "current-context": "dev",
    });
    Ok(serde_json::to_string_pretty(&document)?)
}
