//! A head within the limit breaks no tunnel, however its bytes are encoded.

#![expect(clippy::disallowed_methods, reason = "a test has no drain to leak past")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use protocol::settings::MAX_HEADER_LIST;
use tokio::io::duplex;
use tunnel::settings;

/// A byte whose Huffman code has 28 bits.
const LONG_CODE: u8 = 0xf9;

/// Headers of almost the maximum size.
fn headers() -> HeaderMap {
    let value = vec![LONG_CODE; (MAX_HEADER_LIST / 4 - 100) as usize];
    ["x-a", "x-b", "x-c", "x-d"]
        .into_iter()
        .map(|name| (name.parse().unwrap(), HeaderValue::from_bytes(&value).unwrap()))
        .collect()
}

#[tokio::test]
async fn the_longest_heads_arrive_in_both_directions() {
    let (near, far) = duplex(64 * 1024);
    let (client, server) =
        tokio::join!(settings::client().handshake::<_, Bytes>(near), settings::server().handshake::<_, Bytes>(far));
    let ((mut requests, connection), mut server) = (client.unwrap(), server.unwrap());
    let connection = tokio::spawn(connection);
    let served = tokio::spawn(async move {
        while let Some(accepted) = server.accept().await {
            let (request, mut respond) = accepted.unwrap();
            assert_eq!(request.headers().len(), headers().len());
            let mut response = Response::new(());
            *response.headers_mut() = headers();
            respond.send_response(response, true).unwrap();
        }
    });
    // More than once: h2 also counts per connection.
    for _ in 0..10 {
        requests = requests.ready().await.unwrap();
        let mut request = Request::new(());
        *request.headers_mut() = headers();
        let (response, _) = requests.send_request(request, true).unwrap();
        assert_eq!(response.await.unwrap().headers(), &headers());
    }
    drop(requests);
    connection.await.unwrap().unwrap();
    served.await.unwrap();
}
