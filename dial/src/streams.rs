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
use protocol::offers::GOAWAY_DELAY;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

/// Passes each stream of a tunnel to `serve` until the tunnel ends. Returns the reason. `serve` must return at once, because this
/// drives the connection for all streams. `measured` gets each round trip.
///
/// When `stop` completes, `leave` is called, which must end the stream of offers. After [`GOAWAY_DELAY`], the tunnel accepts no
/// more streams (GOAWAY, RFC 9113, section 6.8), and it ends with its last one.
pub async fn accept<S>(
    io: S,
    stop: impl Future<Output = ()>,
    leave: impl FnOnce(),
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
    let mut left = pin!(async {
        stop.await;
        leave();
        sleep(GOAWAY_DELAY).await;
    });
    let (mut goaway_sent, mut fields) = (false, Decoder::default());
    loop {
        tokio::select! {
            accepted = poll_fn(|cx| turns.poll(cx, |cx| connection.poll_accept(cx))) => match accepted {
                Some(Ok((mut request, respond))) => match fields.decode(&mut request) {
                    Ok(()) => serve(request, respond),
                    // The tables of the two ends differ, so later requests could get wrong fields.
                    Err(error) => return Ok(error.to_string()),
                },
                Some(Err(error)) => return Ok(error.to_string()),
                None if goaway_sent => return Ok("drained".into()),
                None => return Ok("the proxy-server closed it".into()),
            },
            lost = &mut lost => return Ok(lost.to_string()),
            () = &mut left, if !goaway_sent => {
                goaway_sent = true;
                connection.graceful_shutdown();
            }
        }
    }
}

#[cfg(test)]
mod tests;
