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
use tokio::time::sleep;

/// The time from the end of the stream of offers to GOAWAY.
///
/// The proxy-server stops choosing the tunnel when it reads the end of that stream. The requests that it was sending at that moment
/// must arrive before GOAWAY, because some of those that meet it are lost: `h2` acknowledges the PING of a graceful shutdown before
/// it sends the requests in its queue.
const LAST_REQUESTS: Duration = Duration::from_millis(250);

/// Passes each stream of a tunnel to `serve` until the tunnel ends. Returns the reason. `serve` must return at once, because this
/// drives the connection for all streams. `measured` gets each round trip.
///
/// When `stop` completes, `drain` is called, which must end the stream of offers. After [`LAST_REQUESTS`], the tunnel accepts no more
/// streams (GOAWAY, RFC 9113, section 6.8), and it ends with its last one.
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
    let mut closing = pin!(async {
        stop.await;
        drain();
        sleep(LAST_REQUESTS).await;
    });
    let (mut is_closing, mut fields) = (false, Decoder::default());
    loop {
        tokio::select! {
            accepted = poll_fn(|cx| turns.poll(cx, |cx| connection.poll_accept(cx))) => match accepted {
                Some(Ok((mut request, respond))) => match fields.decode(&mut request) {
                    Ok(()) => serve(request, respond),
                    // The tables of the two ends differ, so later requests could get wrong fields.
                    Err(error) => return Ok(error.to_string()),
                },
                Some(Err(error)) => return Ok(error.to_string()),
                None if is_closing => return Ok("drained".into()),
                None => return Ok("the proxy-server closed it".into()),
            },
            lost = &mut lost => return Ok(lost.to_string()),
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.graceful_shutdown();
            }
        }
    }
}

#[cfg(test)]
mod tests;
