#![expect(clippy::disallowed_methods, reason = "a test has no drain to leak past")]

use std::pin::pin;
use std::sync::Arc;

use ::tunnel::{Budget, settings};
use http::Method;
use tokio::io::{AsyncWriteExt, duplex};
use tokio::net::TcpListener;
use tokio::task::yield_now;

use super::*;

#[tokio::test]
async fn what_waits_for_the_tunnel_is_charged_to_the_physical_cluster() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Authority = listener.local_addr().unwrap().to_string().parse().unwrap();
    let cluster: ClusterName = "ke-beijing".parse().unwrap();
    let layer4 = Arc::new(Layer4::new([(cluster.clone(), vec![address])], []));
    tokio::spawn(async move {
        let (mut api_server, _) = listener.accept().await.unwrap();
        let _until_the_end = api_server.write_all(&vec![b'x'; 1 << 20]).await;
    });
    let (near, far) = duplex(1024);
    let (served, budget) = (Arc::clone(&layer4), Budget::new(usize::MAX));
    let name = cluster.clone();
    tokio::spawn(async move {
        let mut agent = settings::server().handshake::<_, Bytes>(far).await.unwrap();
        while let Some(Ok((request, respond))) = agent.accept().await {
            let (served, name) = (Arc::clone(&served), name.clone());
            let request = request.map(|body| Inbound::new(body, &budget));
            tokio::spawn(async move { served.physical(&name, request, respond).await });
        }
    });
    let (mut client, connection) = settings::client().handshake::<_, Bytes>(near).await.unwrap();
    let request = Request::builder().method(Method::CONNECT).uri("10.0.0.1:6443").body(()).unwrap();
    let (response, _to_api_server) = client.send_request(request, false).unwrap();
    let mut connection = pin!(connection);
    // After the head, nobody reads the connection.
    let response = tokio::select! {
        ended = connection.as_mut() => panic!("{ended:?}"),
        response = response => response.unwrap(),
    };
    assert_eq!(response.status(), StatusCode::OK);
    let queue = &layer4.physical[&cluster].1.queue;
    for _ in 0..1_000_000 {
        if queue.held() > 0 {
            return;
        }
        yield_now().await;
    }
    panic!("nothing is charged");
}

#[tokio::test]
async fn the_next_api_server_is_dialled_if_one_is_gone() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (first, second) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let addresses = [gone, first.local_addr().unwrap(), second.local_addr().unwrap()];
    let addresses = addresses.map(|address| address.to_string().parse::<Authority>().unwrap());
    let api_servers = ApiServers { addresses: addresses.to_vec(), last: AtomicUsize::new(0) };
    for _ in 0..2 {
        assert_eq!(api_servers.dial().await.unwrap().1, &addresses[1]);
    }
    drop(first);
    assert_eq!(api_servers.dial().await.unwrap().1, &addresses[2]);
    drop(second);
    assert_eq!(api_servers.dial().await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}
