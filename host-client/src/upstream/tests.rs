//! Tests with real files, and real TLS on loopback.

use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use ops::pki::Authority;
use ops::tls::{ALPN_H2, ClientAuth, ClientCa, TlsVersions, server_config};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{Host, HostError, empty};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An API server that responds to every request with the client's certificate name and token.
struct EchoServer {
    address: SocketAddr,
    ca: Authority,
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl EchoServer {
    async fn start(tasks: &Tasks) -> Self {
        let ca = Authority::create("test", DAY).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let key = Arc::new(Fixed(Arc::new(ca.issue_server(&[name], DAY).unwrap())));
        let config = server_config(key, ClientAuth::Requested, &[ALPN_H2], TlsVersions::Tls12And13);
        let verifier = ClientCa::from_pem(ca.certificate_pem().as_bytes()).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (verifier, inner) = (Arc::new(Mutex::new(verifier)), tasks.clone());
        tasks.spawn("echo", async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                inner.spawn("echo", echo(acceptor.clone(), socket, Arc::clone(&verifier)));
            }
        });
        Self { address, ca }
    }

    /// A kubeconfig that uses `user`, and the files that it names.
    fn kubeconfig(&self, directory: &TempDir, user: &str) -> config::Host {
        let ca = format!("ca-{}.crt", self.address.port());
        fs::write(directory.path().join(&ca), self.ca.certificate_pem()).unwrap();
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
              clusters: [{{name: k, cluster: {{server: 'https://{}', certificate-authority: {ca}}}}}],
              users: [{{name: u, user: {user}}}]}}",
            self.address
        );
        let path = directory.path().join("kubeconfig");
        fs::write(&path, text).unwrap();
        config::Host { kubeconfig: Some(path.into()), ..config::Host::default() }
    }

    fn issue(&self, directory: &TempDir, name: &str) {
        let pair = self.ca.issue_client(name, &["system:masters"], DAY).unwrap();
        fs::write(directory.path().join("tls.crt"), pair.certificate).unwrap();
        fs::write(directory.path().join("tls.key"), pair.key.expose()).unwrap();
    }
}

async fn echo(acceptor: TlsAcceptor, socket: tokio::net::TcpStream, ca: Arc<Mutex<ClientCa>>) {
    let Ok(stream) = acceptor.accept(socket).await else { return };
    let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec).unwrap_or_default();
    let peer = ca.lock().unwrap().verify(&chain, std::time::SystemTime::now());
    let name = peer.map_or_else(|_| "-".to_owned(), |peer| peer.common_name);
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let token = request.headers().get("authorization").map_or("-", |token| token.to_str().unwrap());
        let response = http::Response::builder().header("seen-identity", format!("{name} {token}")).body(()).unwrap();
        drop(respond.send_response(response, true));
    }
}

async fn identity_of_agent(host: &Host) -> Result<String, HostError> {
    let request = http::Request::get("/version").header("authorization", "Bearer caller").body(empty()).unwrap();
    let response = host.send(request).await?;
    Ok(response.headers()["seen-identity"].to_str().unwrap().to_owned())
}

/// Repeats a request until the response is as expected, because a reload takes effect with a later connection.
async fn becomes(host: &Host, expected: &str) {
    let matching = async {
        while identity_of_agent(host).await.unwrap() != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), matching).await.expect(expected);
}

#[tokio::test]
async fn certificates_and_tokens_follow_their_files() {
    let (tasks, directory) = (Tasks::new(), TempDir::new().unwrap());
    let server = EchoServer::start(&tasks).await;
    server.issue(&directory, "first");
    fs::write(directory.path().join("token"), "one\n").unwrap();
    let user = "{client-certificate: tls.crt, client-key: tls.key, tokenFile: token}";
    let config = server.kubeconfig(&directory, user);
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let host = Host::open(&config, &reloader, tasks.clone()).unwrap();
    assert_eq!(identity_of_agent(&host).await.unwrap(), "first Bearer one");

    fs::write(directory.path().join("token"), "two\n").unwrap();
    reloader.reload();
    assert_eq!(identity_of_agent(&host).await.unwrap(), "first Bearer two");
    assert_eq!(host.statistics().connections_begun, 1);

    server.issue(&directory, "second");
    reloader.reload();
    becomes(&host, "second Bearer two").await;
}

#[tokio::test]
async fn a_kubeconfig_can_change_completely() {
    let (tasks, directory) = (Tasks::new(), TempDir::new().unwrap());
    let old = EchoServer::start(&tasks).await;
    let new = EchoServer::start(&tasks).await;
    let config = old.kubeconfig(&directory, "{token: one}");
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let host = Host::open(&config, &reloader, tasks.clone()).unwrap();
    assert_eq!(identity_of_agent(&host).await.unwrap(), "- Bearer one");

    new.issue(&directory, "third");
    new.kubeconfig(&directory, "{client-certificate: tls.crt, client-key: tls.key}");
    reloader.reload();
    becomes(&host, "third -").await;
    assert_eq!(host.statistics().servers[0].address.port(), new.address.port());

    // It is invalid, so the previous one stays in use.
    fs::write(directory.path().join("kubeconfig"), "current-context: nowhere").unwrap();
    reloader.reload();
    assert_eq!(identity_of_agent(&host).await.unwrap(), "third -");
}

#[tokio::test]
async fn an_unverified_api_server_gets_no_request() {
    let (tasks, directory) = (Tasks::new(), TempDir::new().unwrap());
    let server = EchoServer::start(&tasks).await;
    let mut config = server.kubeconfig(&directory, "{token: secret}");
    let other = Authority::create("other", DAY).unwrap();
    let ca = format!("ca-{}.crt", server.address.port());
    fs::write(directory.path().join(ca), other.certificate_pem()).unwrap();
    config.servers = vec![format!("https://localhost:{}", server.address.port()).into()];
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let host = Host::open(&config, &reloader, tasks.clone()).unwrap();
    let HostError::Unreachable(unreachable) = identity_of_agent(&host).await.unwrap_err() else {
        panic!("not unreachable")
    };
    assert_eq!(unreachable.attempts().len(), 2);
    for attempt in unreachable.attempts() {
        assert!(matches!(attempt.reason, crate::ConnectReason::Tls(_)), "{attempt}");
    }
}

#[tokio::test]
async fn an_unusable_configuration_is_reported_at_start() {
    let (tasks, directory) = (Tasks::new(), TempDir::new().unwrap());
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let open = |config: &config::Host| Host::open(config, &reloader, tasks.clone()).unwrap_err();
    assert!(matches!(open(&config::Host::default()), OpenError::Nothing));
    let missing = config::Host { kubeconfig: Some(directory.path().join("none").into()), ..config::Host::default() };
    assert!(matches!(open(&missing), OpenError::Kubeconfig(_)));
    let insecure = config::Host { servers: vec!["http://127.0.0.1:8080".to_owned().into()], ..missing };
    assert!(matches!(open(&insecure), OpenError::Server(_)));
}
