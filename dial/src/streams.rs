//! Accepts the streams that a proxy-server opens on a tunnel.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::tunnel::Batched;
use ::tunnel::keepalive::{Patience, keepalive};
use ::tunnel::metered::{Meter, Metered};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;
use protocol::field_table::Decoder;
use tokio::io::{AsyncRead, AsyncWrite};

/// Counts the bytes that arrive.
#[derive(Debug, Default)]
struct Received(AtomicU64);

impl Meter for Received {
    fn received(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sent(&self, _: u64) {}
}

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
    let meter = Arc::new(Received::default());
    let (io, turns) = Batched::new(Metered::new(io, Arc::clone(&meter)));
    let mut connection = tunnel::settings::server().handshake(io).await?;
    let pings = connection.ping_pong().expect("it is taken once");
    let mut lost = pin!(keepalive(pings, Patience::DIALLED, measured, || meter.0.load(Ordering::Relaxed)));
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
