//! A connection and requests in memory, for the tests of the phases.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use audit::Auditors;
use http::{Request, Response, request};
use hyper::body::Incoming;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::metrics::{Build, Registry as Metrics};
use ops::pki::Authority;
use ops::tls::ClientCa;
use protocol::Offer;
use protocol::registration::Mode;
use request_metrics::{Names, RequestMetrics};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection::{Connection, Services};
use super::idle::Requests;
use super::issuer_token::LastToken;
use super::peer::Peer;
use super::prefetch::LastCheck;
use super::record::{Recorded, begin};
use crate::client_cas::ClientCas;
use crate::config::{self, Cluster};
use crate::issuers::Issuers;
use crate::limits::{Limits, Network};
use crate::registry::{Clusters, Registry};
use crate::tunnel::{Origin, Tunnel};

/// The virtual cluster of [`services`].
pub(super) fn cluster() -> Arc<Cluster> {
    let path = ops::config::FilePath::from(std::path::PathBuf::from("clients.crt"));
    Arc::new(Cluster {
        name: "ke-beijing".parse().unwrap(),
        agents: vec!["site-a".parse().unwrap()],
        mode: Mode::Virtual,
        client_ca: Some(config::ClientCa { certificate: path.into(), key: None }),
        api_server: None,
        oidc: None,
        destinations: Vec::new(),
        audit: None,
    })
}

fn physical() -> Arc<Cluster> {
    Arc::new(Cluster {
        name: "branch-7".parse().unwrap(),
        agents: vec!["branch-7".parse().unwrap()],
        mode: Mode::Physical,
        client_ca: None,
        oidc: None,
        api_server: Some("10.2.0.1:6443".parse().unwrap()),
        destinations: Vec::new(),
        audit: None,
    })
}

/// Services with a virtual and a physical cluster, without tunnels. An address may have two streams at a time.
pub(super) fn services() -> Arc<Services> {
    let metrics = Metrics::new(Build { component: "test", version: "0" });
    let limits = config::Limits { streams_per_address: 2.into(), ..config::Limits::default() };
    let limits = Limits::new(&limits, limits.connections(None, None), &metrics);
    let authority = Authority::create("clients", std::time::Duration::from_secs(3600)).unwrap();
    let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
    let client_cas = ClientCas::default();
    client_cas.exchange(HashMap::from([(cluster().name.clone(), ("clients.crt".into(), Watched::fixed(ca)))]));
    let tasks = Tasks::new();
    let issuers = Arc::new(Issuers::new(tasks.child(), &metrics));
    let requests = RequestMetrics::new(&metrics, Names::SERVER);
    requests.exchange([&cluster().name].into_iter());
    Arc::new(Services {
        documents: Arc::default(),
        expectations: Arc::default(),
        auditors: Arc::new(Auditors::new(&metrics)),
        registry: Arc::new(Registry::new(Clusters::new([cluster(), physical()]))),
        client_cas: Arc::new(client_cas),
        issuers,
        limits,
        metrics: Arc::new(requests),
        traces: request_traces::Traces::default(),
        domain: "atoll.internal".into(),
        tasks,
        drain: std::time::Duration::from_secs(2),
    })
}

/// A connection without a client certificate, that CONNECT or SNI has bound to this cluster.
pub(super) fn connection(bound: Option<&str>) -> Arc<Connection> {
    connection_of(services(), bound)
}

/// The same, with these services.
pub(super) fn connection_of(services: Arc<Services>, bound: Option<&str>) -> Arc<Connection> {
    let permit = services.limits.connections.admit(Network::default()).unwrap();
    let bound = bound.map(|name| name.parse().unwrap());
    Arc::new(Connection {
        services,
        bound,
        peer: Peer::new(Vec::new()),
        last_token: LastToken::default(),
        last_check: LastCheck::default(),
        permit,
        requests: Requests::new(),
    })
}

/// An empty body, as hyper reads it.
pub(super) async fn incoming() -> Incoming {
    let (near, mut far) = tokio::io::duplex(1024);
    let (mut requests, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(near)).await.unwrap();
    let response = requests.send_request(Request::new(http_body_util::Empty::<bytes::Bytes>::new()));
    // hyper refuses a response that comes before its request.
    let answer = async {
        far.read_u8().await.unwrap();
        far.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        pending::<()>().await;
    };
    let response = tokio::select! {
        response = response => response,
        _ = connection => panic!("the connection has ended before the response"),
        () = answer => unreachable!("it never ends"),
    };
    response.unwrap().into_body()
}

/// This request, with a record.
pub(super) async fn recorded(request: Request<()>, connection: &Arc<Connection>) -> Recorded {
    let (head, ()) = request.into_parts();
    begin(Request::from_parts(head, incoming().await), Arc::clone(connection)).0
}

/// Registers an agent that answers all requests by this function.
pub(super) async fn agent(
    services: &Services,
    answer: impl Fn(request::Parts) -> Response<&'static str> + Send + 'static,
) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (client, server) = tokio::join!(
        ::tunnel::settings::client().handshake(near),
        ::tunnel::settings::server().handshake::<_, bytes::Bytes>(far)
    );
    let ((requests, connection), mut server) = (client.unwrap(), server.unwrap());
    services.tasks.spawn("tunnel", async move { drop(connection.await) });
    services.tasks.spawn("agent", async move {
        while let Some(Ok((request, mut respond))) = server.accept().await {
            let (head, body) = answer(request.into_parts().0).into_parts();
            let mut stream = respond.send_response(Response::from_parts(head, ()), false).unwrap();
            stream.send_data(body.into(), true).unwrap();
        }
    });
    let tunnel = Tunnel::new(Origin::agent("site-a"), requests);
    let offer = Offer::new(cluster().name.clone(), Mode::Virtual);
    assert_eq!(services.registry.renew(&tunnel, &[offer]), []);
}
