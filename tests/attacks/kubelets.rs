//! Writes to the host like kubelets: each kubelet renews its Lease every ten seconds.
//!
//! A consistent list waits until the watch cache of its kind has received the latest write of any kind (KEP-2340). On a
//! host without writes, lists do not wait. There, the writes of one tenant would slow down the lists of all others,
//! with or without Atoll.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{Credentials, HostCluster, Http2};
use bytes::Bytes;
use http::Request;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::interval;

/// The collection of the Leases of kubelets.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Renews Leases until it ends.
pub(crate) struct Kubelets {
    connections: Http2,
    renewing: JoinHandle<anyhow::Result<()>>,
}

// === impl Kubelets ===

impl Kubelets {
    /// Renews this number of Leases per second.
    pub(crate) fn begin(host: &Arc<HostCluster>, rate: u32) -> anyhow::Result<Self> {
        let connections = Http2::with(&Credentials::of(&host.kubectl())?)?;
        let server = host.api_servers()?.into_iter().next().context("no API server")?;
        let port = server.rsplit_once(':').context("no port")?.1.parse()?;
        let session = connections.run(async {
            let session = connections.to_host(port).await?;
            let lease = json!({"metadata": {"name": "renewed"}, "spec": {"holderIdentity": "renewed"}});
            let (created, _) =
                session.exchange(request("POST", LEASES, "application/json", &lease.to_string())?).await?;
            ensure!(created == 201, "cannot create the Lease: {created}");
            Ok(session)
        })?;
        let renewing = connections.spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
            for number in 0_u64.. {
                ticks.tick().await;
                let renewed = json!({"spec": {"leaseTransitions": number % 1000}}).to_string();
                let media = "application/merge-patch+json";
                session.exchange(request("PATCH", &format!("{LEASES}/renewed"), media, &renewed)?).await?;
            }
            Ok(())
        });
        Ok(Self { connections, renewing })
    }

    /// Stops. Returns the error if it has failed before.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        if self.renewing.is_finished() {
            self.connections.run(self.renewing)??;
        } else {
            self.renewing.abort();
        }
        Ok(())
    }
}

fn request(method: &str, path: &str, media: &str, body: &str) -> anyhow::Result<Request<Bytes>> {
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    Ok(request.header("content-type", media).body(Bytes::from(body.to_owned()))?)
}
