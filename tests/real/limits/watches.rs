//! Unread watches: each occupies seats of the host until its initial events are read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{Credentials, HostCluster, Http2, Route, eventually};
use http::Request;
use tokio::time::timeout;

use super::lists::fill;
use super::site;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// Too many watches if each occupies ten seats, and few enough if each occupies one.
const WATCHES: usize = 24;

/// Objects that are larger than the buffers of an unread stream, so that their watches never become idle.
const OBJECTS: usize = 8;

/// For version 0, in any notation, the host sends all objects (`ParseResourceVersion` in apiserver's
/// `pkg/storage/etcd3`), so such a watch occupies ten seats. A watch from a later version occupies one.
pub(super) fn from_version_zero_use_ten_seats(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, other) = site(host, "zero", "")?;
    fill(&site, &cluster, OBJECTS)?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let other = site.administrator(&other, Route::Path)?;
    let http = Http2::with(&Credentials::of(&kubectl)?)?;
    let port = site.site().ports.endpoint;
    let list = kubectl.ok(&["get", "--raw", "/api/v1/namespaces/default/configmaps"])?;
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let latest = list["metadata"]["resourceVersion"].as_str().context("the list has no resourceVersion")?;
    let admitted = http.run(codes(&http, port, &cluster, latest))?;
    ensure!(admitted == BTreeMap::from([(200, WATCHES)]), "version {latest}: {admitted:?}");
    for version in ["0", "00", "000000"] {
        // If the host sends the first event late, the agent assumes that there are no more initial events, and frees
        // the seats.
        eventually(RESPONSE_TIMEOUT, || {
            let codes = http.run(codes(&http, port, &cluster, version))?;
            ensure!(codes.keys().eq(&[200, 429]), "version {version}: {codes:?}");
            Ok(())
        })?;
    }
    other.ok(&["get", "pods", "--request-timeout=30s"]).map(drop)
}

/// Opens watches from this version concurrently. Returns how often each status is the response. Watches without seats
/// get an error.
async fn codes(http: &Http2, port: u16, cluster: &str, version: &str) -> anyhow::Result<BTreeMap<u16, usize>> {
    // The window is zero, so no stream can send data.
    let session = http.session(port, cluster, 0).await?;
    let path = "/api/v1/namespaces/long/configmaps?watch=1&resourceVersion=";
    let mut responses = Vec::new();
    for _ in 0..WATCHES {
        let request = Request::get(format!("https://{cluster}.atoll.internal{path}{version}")).body(())?;
        responses.push(session.send(request, true).await?.0);
    }
    let (mut codes, mut unread) = (BTreeMap::new(), Vec::new());
    for answer in responses {
        let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("a watch got no response")??;
        *codes.entry(answer.status().as_u16()).or_default() += 1;
        unread.push(answer);
    }
    Ok(codes)
}
