//! Tells a proxy-server which clusters this process serves, and each change: see [`protocol::offers`].

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_bytes;
use bytes::Bytes;
use h2::server::SendResponse;
use http::Response;
use protocol::offers::{Lines, Offers, line};
use protocol::{ClusterName, Offer, RefusedClusters, Verdict};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::routes::Verdicts;

/// The current offer.
pub type Current = watch::Receiver<Arc<[Offer]>>;

/// Serves the stream until the tunnel ends or `stop` is cancelled. Reports each verdict.
pub async fn tell(
    mut current: Current,
    mut inbound: Inbound,
    mut respond: SendResponse<Bytes>,
    report: &Verdicts,
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
                    Ok(verdicts) => for mut verdict in verdicts {
                        retain_offered(&mut verdict, &current.borrow());
                        log(&verdict, &report.borrow());
                        report.send_replace(verdict);
                    },
                    Err(error) => {
                        warn!(%error, "cannot parse the proxy-server's response to the list of clusters");
                        return Ok(());
                    }
                },
                Some(Err(_)) | None => return Ok(()),
            },
            // The tunnel waits for its streams, and this one does not end by itself. Its end also tells the proxy-server to use
            // other tunnels.
            () = stop.cancelled() => return outbound.send_data(Bytes::new(), true),
        }
    }
}

/// Removes names that this agent does not offer: it may have withdrawn them, and metrics must have no other names.
fn retain_offered(verdict: &mut Verdict, offers: &[Offer]) {
    if verdict.refused.is_empty() {
        // A proxy-server of protocol 1.0 names no clusters.
        return;
    }
    let offered: HashSet<_> = offers.iter().map(|offer| &offer.name).collect();
    for refused in &mut verdict.refused {
        refused.clusters.retain(|name| offered.contains(name));
    }
    verdict.refused.retain(|refused| !refused.clusters.is_empty());
    verdict.refusal = RefusedClusters::summary(&verdict.refused);
}

/// Logs what is new in a verdict.
fn log(verdict: &Verdict, before: &Verdict) {
    match &verdict.refusal {
        None => info!("the proxy-server has accepted the list of clusters"),
        // A proxy-server of protocol 1.0.
        Some(refusal) if verdict.refused.is_empty() => {
            warn!(reason = ?refusal.reason, %refusal, "the proxy-server has refused the list of clusters, and keeps the previous one");
        }
        Some(_) => {
            for refused in verdict.refused.iter().filter(|refused| !before.refused.contains(refused)) {
                let RefusedClusters { clusters, refusal } = refused;
                let clusters: Vec<_> = clusters.iter().map(ClusterName::as_str).collect();
                warn!(?clusters, reason = ?refusal.reason, %refusal, "the proxy-server refuses these clusters; the others are not affected");
            }
        }
    }
}

#[cfg(test)]
mod tests;
