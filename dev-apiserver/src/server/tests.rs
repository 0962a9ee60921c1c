use std::num::NonZeroUsize;

use ops::files::Watched;
use ops::pki::Authority;
use ops::tls::{Identity, ServerCa, client_config};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// The status line of the response, and the whole response.
async fn get(
    authority: &Authority,
    groups: Option<&str>,
    address: std::net::SocketAddr,
    path: &str,
) -> (String, String) {
    let ca = Watched::fixed(ServerCa::from_pem(authority.certificate_pem().as_bytes()).unwrap());
    let identity = groups.map(|group| {
        let pair = authority.issue_client("somebody", &[group], HOUR).unwrap();
        let read = Identity::from_pem(pair.certificate.as_bytes(), pair.key.expose().as_bytes());
        Watched::fixed(read.unwrap())
    });
    let config = client_config(ca, identity, &[ALPN_HTTP1], TlsVersions::Tls12And13);
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server may close the connection without `close_notify`.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

#[tokio::test]
async fn certificates_authenticate_clients() {
    let authority = Authority::create("test", HOUR).unwrap();
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap(), NonZeroUsize::new(16).unwrap()).await.unwrap();
    let options = Options {
        listener,
        certificate: authority.issue_server(&[ServerName::try_from("localhost").unwrap()], HOUR).unwrap(),
        serving_ca: authority.certificate_pem().to_owned(),
        client_ca: ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap(),
    };
    let tasks = Tasks::new();
    let address = DevApiserver::start(options, &tasks).address();
    let nodes = "/api/v1/nodes";
    assert_eq!(get(&authority, None, address, "/readyz").await.0, "HTTP/1.1 200 OK");
    assert_eq!(get(&authority, None, address, nodes).await.0, "HTTP/1.1 403 Forbidden");
    assert_eq!(get(&authority, Some("dev"), address, nodes).await.0, "HTTP/1.1 403 Forbidden");
    let (line, all) = get(&authority, Some("system:masters"), address, nodes).await;
    assert!(line == "HTTP/1.1 200 OK" && all.contains("\"hangzhou-2\""), "{all}");
    let stranger = Authority::create("stranger", HOUR).unwrap();
    let pair = stranger.issue_client("somebody", &["system:masters"], HOUR).unwrap();
    let chain = ops::pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap();
    let client_ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
    assert!(client_ca.verify(&chain, std::time::SystemTime::now()).is_err());
    assert_eq!(tasks.drain(HOUR, std::future::pending::<()>()).await, ops::drain::Drained::Clean);
}
