//! Applies changes of the addresses and credentials to a host.
//!
//! A changed kubeconfig (another address, other files) replaces the pools. A changed certificate replaces only their
//! connections. A changed token replaces neither.

use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::access::{Access, Origin, Renewals, changed};
use super::core::Core;
use super::limits::REOPEN_INTERVAL;

/// Applies changes until `gone` is cancelled.
pub(super) async fn follow(origin: Origin, mut renewals: Renewals, core: Arc<Core>, gone: CancellationToken) {
    let origin = Arc::new(origin);
    let mut client_config = origin.changes();
    loop {
        tokio::select! {
            () = gone.cancelled() => return,
            () = changed(Some(&mut client_config)) => match reopen(&origin, &gone).await {
                Some((access, new)) => {
                    info!("the kubeconfig has changed");
                    core.access.swap(Arc::new(access)).servers.close();
                    renewals = new;
                }
                None => return,
            },
            () = renewals.next() => {
                info!("credentials have changed; new requests go over new connections");
                core.access.load().servers.retire();
            }
        }
    }
}

/// Repeats until it succeeds, because the kubeconfig may exist before the files that it names.
async fn reopen(origin: &Arc<Origin>, gone: &CancellationToken) -> Option<(Access, Renewals)> {
    loop {
        let origin = Arc::clone(origin);
        // It is joined at once, so it does not outlive the drain. A blocked file system must not stop the runtime.
        match tokio::task::spawn_blocking(move || origin.open()).await {
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
