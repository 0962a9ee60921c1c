use ::tunnel::settings;
use h2::client::SendRequest;
use http::Response;
use tokio::sync::oneshot;
use tokio::time::{advance, timeout};

use super::*;

/// A tunnel whose streams are answered at once, and the client at its other end.
struct Served<F> {
    accepting: F,
    requests: SendRequest<Bytes>,
    connection: h2::client::Connection<tokio::io::DuplexStream, Bytes>,
    stop: oneshot::Sender<()>,
    drained: oneshot::Receiver<()>,
}

async fn served() -> Served<impl Future<Output = Result<String, h2::Error>>> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (stop, stopped) = oneshot::channel();
    let (draining, drained) = oneshot::channel();
    let serve = |_, mut respond: SendResponse<Bytes>| {
        respond.send_response(Response::new(()), true).unwrap();
    };
    let accepting = accept(far, async { stopped.await.unwrap() }, || draining.send(()).unwrap(), |_| {}, serve);
    let (requests, connection) = settings::client().handshake(near).await.unwrap();
    Served { accepting, requests, connection, stop, drained }
}

/// `None` if the tunnel accepts no more requests, or has ignored this one.
async fn get(requests: &SendRequest<Bytes>) -> Option<http::StatusCode> {
    let mut ready = requests.clone().ready().await.ok()?;
    let (response, _) = ready.send_request(Request::new(()), true).ok()?;
    Some(response.await.ok()?.status())
}

#[tokio::test(start_paused = true)]
async fn the_last_requests_arrive_after_the_drain_has_begun() {
    let Served { accepting, requests, connection, stop, drained } = served().await;
    let client = async {
        assert_eq!(get(&requests).await, Some(http::StatusCode::OK));
        stop.send(()).unwrap();
        drained.await.unwrap();
        advance(LAST_REQUESTS / 2).await;
        assert_eq!(get(&requests).await, Some(http::StatusCode::OK));
        advance(LAST_REQUESTS / 2).await;
        timeout(Duration::from_secs(5), async { while get(&requests).await.is_some() {} }).await.unwrap();
        drop(requests);
    };
    let (why, _, ()) = tokio::join!(accepting, connection, client);
    assert_eq!(why.unwrap(), "drained");
}
