//! Watches that nobody reads: each occupies seats of the host until its initial events are read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::{Credentials, HostCluster, Http2, Route, eventually};
use http::Request;
use tokio::time::timeout;

use super::lists::fill;
use super::site;

const PATIENCE: Duration = Duration::from_secs(90);

/// More than may occupy seats before some have to be given up, and fewer than there are seats.
const WATCHES: usize = 24;

/// Together more than waits in a stream that nobody reads, so that their watches are never silent.
const OBJECTS: usize = 8;

/// The host sends all objects from the version 0, however it is written (`ParseResourceVersion` in apiserver's
/// `pkg/storage/etcd3`), so that such a watch occupies ten seats. One from a later version occupies one.
pub(super) fn from_any_zero_are_new_ones(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, other) = site(host, "zero", "")?;
    fill(&site, &cluster, OBJECTS)?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let other = site.administrator(&other, Route::Path)?;
    let http = Http2::with(&Credentials::of(&kubectl)?)?;
    let port = site.site().ports.endpoint;
    let list = kubectl.ok(&["get", "--raw", "/api/v1/namespaces/default/configmaps"])?;
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let latest = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
    let admitted = http.run(codes(&http, port, &cluster, latest))?;
    ensure!(admitted == BTreeMap::from([(200, WATCHES)]), "version {latest}: {admitted:?}");
    for version in ["0", "00", "000000"] {
        // A host that is slow to send the first event is taken for one that has sent all, and then the seats are free.
        eventually(PATIENCE, || {
            let codes = http.run(codes(&http, port, &cluster, version))?;
            ensure!(codes.keys().eq(&[200, 429]), "version {version}: {codes:?}");
            Ok(())
        })?;
    }
    other.ok(&["get", "pods", "--request-timeout=30s"]).map(drop)
}

/// How often each status is the answer to watches from this version, all at once. Those that get no seats in time are told
/// so.
async fn codes(http: &Http2, port: u16, cluster: &str, version: &str) -> anyhow::Result<BTreeMap<u16, usize>> {
    // No stream may send a byte: all of it waits.
    let session = http.session(port, cluster, 0).await?;
    let path = "/api/v1/namespaces/long/configmaps?watch=1&resourceVersion=";
    let mut answers = Vec::new();
    for _ in 0..WATCHES {
        let request = Request::get(format!("https://{cluster}.atoll.internal{path}{version}")).body(())?;
        answers.push(session.send(request, true).await?.0);
    }
    let (mut codes, mut unread) = (BTreeMap::new(), Vec::new());
    for answer in answers {
        let answer = timeout(PATIENCE, answer).await.context("a watch was never answered")??;
        *codes.entry(answer.status().as_u16()).or_default() += 1;
        unread.push(answer);
    }
    Ok(codes)
}
