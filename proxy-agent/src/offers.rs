//! Announces to a proxy-server the clusters that this agent serves, and each change: see [`protocol::offers`].

use std::future::poll_fn;
use std::sync::Arc;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_bytes;
use bytes::Bytes;
use h2::server::SendResponse;
use http::Response;
use protocol::Offer;
use protocol::offers::{Lines, Offers, Verdict, line};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The current offer.
pub type Current = watch::Receiver<Arc<[Offer]>>;

/// Serves the stream until the tunnel ends or `stop` is cancelled.
pub(crate) async fn tell(
    mut current: Current,
    mut inbound: Inbound,
    mut respond: SendResponse<Bytes>,
    stop: CancellationToken,
) -> Result<(), h2::Error> {
    let mut outbound = respond.send_response(Response::new(()), false)?;
    let mut lines = Lines::default();
    // Also send the first offer, because it may have changed since the registration.
    current.mark_changed();
    loop {
        tokio::select! {
            // The sender outlives the tunnels.
            Ok(()) = current.changed() => {
                let clusters = current.borrow_and_update().to_vec();
                send_bytes(&mut outbound, Bytes::from(line(&Offers { clusters })), false).await?;
            }
            chunk = poll_fn(|cx| inbound.poll_chunk(cx)) => match chunk {
                Some(Ok(chunk)) => match lines.take::<Verdict>(&chunk) {
                    Ok(verdicts) => verdicts.iter().for_each(log_verdict),
                    Err(error) => {
                        warn!(%error, "cannot parse the proxy-server's response to the list of clusters");
                        return Ok(());
                    }
                },
                Some(Err(_)) | None => return Ok(()),
            },
            // The tunnel waits for its streams, and this one does not end by itself.
            () = stop.cancelled() => return outbound.send_data(Bytes::new(), true),
        }
    }
}

fn log_verdict(verdict: &Verdict) {
    match &verdict.refusal {
        None => info!("the proxy-server has accepted the list of clusters"),
        Some(refusal) => {
            warn!(reason = ?refusal.reason, %refusal, "the proxy-server has refused the list of clusters, and keeps the previous one");
        }
    }
}
