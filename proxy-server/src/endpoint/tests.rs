use std::convert::Infallible;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// The documentation names this limit.
#[tokio::test]
async fn a_request_over_http1_has_up_to_100_headers() {
    for (count, status) in [(100, "200"), (101, "431")] {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let service = service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(String::new())) });
        let groups = "impersonate-group: g\r\n".repeat(count - 1);
        let head = format!("GET /api HTTP/1.1\r\nconnection: close\r\n{groups}\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let served = async { drop(http1().serve_connection(TokioIo::new(server), service).await) };
        let mut read = String::new();
        let ((), ended) = tokio::join!(served, client.read_to_string(&mut read));
        ended.unwrap();
        assert!(read.starts_with(&format!("HTTP/1.1 {status} ")), "{count}: {read}");
    }
}
