//! Applies changes of the addresses and credentials to a host.
//!
//! A changed kubeconfig (another address, other files) replaces the pools. A changed certificate replaces only their
//! connections. A changed token replaces neither.

use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::core::Core;
use super::limits::REOPEN_INTERVAL;
use super::upstream::{Renewals, Upstream, UpstreamSource, changed};

/// Applies changes until `gone` is cancelled.
pub(super) async fn follow(source: UpstreamSource, mut renewals: Renewals, core: Arc<Core>, gone: CancellationToken) {
    let source = Arc::new(source);
    let mut client_config = source.changes();
    loop {
        tokio::select! {
            () = gone.cancelled() => return,
            () = changed(Some(&mut client_config)) => match reopen(&source, &gone).await {
                Some((upstream, new)) => {
                    info!("the kubeconfig has changed");
                    core.upstream.swap(Arc::new(upstream)).servers.close();
                    renewals = new;
                }
                None => return,
            },
            () = renewals.next() => {
                info!("credentials have changed; new requests go over new connections");
                core.upstream.load().servers.retire();
            }
        }
    }
}

/// Repeats until it succeeds, because the kubeconfig may exist before the files that it names.
async fn reopen(source: &Arc<UpstreamSource>, gone: &CancellationToken) -> Option<(Upstream, Renewals)> {
    loop {
        let source = Arc::clone(source);
        // It is joined at once, so it does not outlive the drain. A blocked file system must not stop the runtime.
        match tokio::task::spawn_blocking(move || source.open()).await {
            Ok(Ok(opened)) => return Some(opened),
            Ok(Err(error)) => {
                let error: &dyn std::error::Error = &error;
                error!(error, "cannot use the new kubeconfig yet; the previous one stays in use");
            }
            Err(panic) => error!(%panic, "cannot read the new kubeconfig"),
        }
        gone.run_until_cancelled(sleep(REOPEN_INTERVAL)).await?;
    }
}
