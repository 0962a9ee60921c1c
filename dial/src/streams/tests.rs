use ::tunnel::settings;
use h2::client::SendRequest;
use http::Response;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::*;

/// A tunnel whose streams are answered at once, and the client at its other end.
struct Served<F> {
    accepting: F,
    requests: SendRequest<Bytes>,
    connection: h2::client::Connection<tokio::io::DuplexStream, Bytes>,
    stop: oneshot::Sender<()>,
    left: oneshot::Receiver<()>,
}

async fn served() -> Served<impl Future<Output = Result<String, h2::Error>>> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (stop, stopped) = oneshot::channel();
    let (leave, left) = oneshot::channel();
    let serve = |_, mut respond: SendResponse<Bytes>| {
        respond.send_response(Response::new(()), true).unwrap();
    };
    let accepting = accept(far, async { stopped.await.unwrap() }, || leave.send(()).unwrap(), |_| {}, serve);
    let (requests, connection) = settings::client().handshake(near).await.unwrap();
    Served { accepting, requests, connection, stop, left }
}

/// `None` if the tunnel accepts no more requests, or has ignored this one.
async fn get(requests: &SendRequest<Bytes>) -> Option<http::StatusCode> {
    let mut ready = requests.clone().ready().await.ok()?;
    let (response, _) = ready.send_request(Request::new(()), true).ok()?;
    Some(response.await.ok()?.status())
}

#[tokio::test(start_paused = true)]
async fn requests_are_accepted_until_goaway() {
    let Served { accepting, requests, connection, stop, left } = served().await;
    let client = async {
        assert_eq!(get(&requests).await, Some(http::StatusCode::OK));
        stop.send(()).unwrap();
        left.await.unwrap();
        let begun = Instant::now();
        let last = async {
            while get(&requests).await.is_some() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(5), last).await.unwrap();
        assert!(begun.elapsed() >= GOAWAY_DELAY, "{:?}", begun.elapsed());
        drop(requests);
    };
    let (why, _, ()) = tokio::join!(accepting, connection, client);
    assert_eq!(why.unwrap(), "drained");
}
