//! Accepts the streams that a proxy-server opens on a tunnel.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::Batched;
use ::tunnel::keepalive::{Intervals, keepalive};
use ::tunnel::metered::{Metered, Received};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;
use protocol::field_table::Decoder;
use tokio::io::{AsyncRead, AsyncWrite};

/// Passes each stream of a tunnel to `serve` until the tunnel ends. Returns the reason. `serve` must return at once, because this
/// drives the connection for all streams. `measured` gets each round trip.
///
/// When `stop` completes, `drain` is called, the tunnel accepts no more streams (GOAWAY, RFC 9113, section 6.8), and it ends with
/// its last one.
pub async fn accept<S>(
    io: S,
    stop: impl Future<Output = ()>,
    drain: impl FnOnce(),
    measured: impl FnMut(Duration),
    mut serve: impl FnMut(Request<RecvStream>, SendResponse<Bytes>),
) -> Result<String, h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let received = Arc::new(Received::default());
    let (io, turns) = Batched::new(Metered::new(io, Arc::clone(&received)));
    let mut connection = tunnel::settings::server().handshake(io).await?;
    let pings = connection.ping_pong().expect("it is taken once");
    let mut lost = pin!(keepalive(pings, Intervals::DIALLED, measured, || received.bytes()));
    let (mut stop, mut drain, mut fields) = (pin!(stop), Some(drain), Decoder::default());
    loop {
        tokio::select! {
            accepted = poll_fn(|cx| turns.poll(cx, |cx| connection.poll_accept(cx))) => match accepted {
                Some(Ok((mut request, respond))) => match fields.decode(&mut request) {
                    Ok(()) => serve(request, respond),
                    // The tables of the two ends differ, so later requests could get wrong fields.
                    Err(error) => return Ok(error.to_string()),
                },
                Some(Err(error)) => return Ok(error.to_string()),
                None if drain.is_none() => return Ok("drained".into()),
                None => return Ok("the proxy-server closed it".into()),
            },
            lost = &mut lost => return Ok(lost.to_string()),
            () = &mut stop, if drain.is_some() => {
                if let Some(drain) = drain.take() {
                    drain();
                }
                connection.graceful_shutdown();
            }
        }
    }
}
