//! Unread lists: the agent buffers those in protobuf, and those in JSON occupy seats of the host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::read;
use atoll_tests::{Credentials, HostCluster, Http2, Kubectl, Route, VirtualSite, eventually};
use http::Request;
use serde_json::json;
use tokio::time::timeout;

use super::{Memory, site};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// The number of objects of almost a megabyte. Their list is almost as long as the longest list that the agent sends.
const OBJECTS: usize = 28;
const LENGTH: usize = 950_000;

const READERS: usize = 12;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(super) fn that_nobody_reads_are_bounded(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, other) = site(host, "unread", "")?;
    fill(&site, &cluster, OBJECTS)?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let other = site.administrator(&other, Route::Path)?;
    let http = Http2::with(&Credentials::of(&kubectl)?)?;
    let port = site.site().ports.endpoint;
    let works = || -> anyhow::Result<()> {
        for kubectl in [&kubectl, &other] {
            eventually(RESPONSE_TIMEOUT, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]))?;
        }
        // Objects and request bodies have separate budgets.
        eventually(RESPONSE_TIMEOUT, || kubectl.ok(&["create", "configmap", "small", "--dry-run=server"]).map(drop))
    };
    works()?;
    let memory = Memory::measure(&site)?;
    http.run(streams_make_room(&http, port, &cluster, &other))?;
    let codes = http.run(async {
        // The window is zero, so no stream can send data.
        let session = http.session(port, &cluster, 0).await?;
        let mut responses = Vec::new();
        for _ in 0..READERS {
            responses.push(session.send(list(&cluster, PROTOBUF)?, true).await?.0);
        }
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        let mut unread = Vec::new();
        for answer in responses {
            let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("a list got no response")??;
            let code = answer.status().as_u16();
            ensure!(code != 429 || answer.headers().contains_key("retry-after"), "{answer:?}");
            *codes.entry(code).or_default() += 1;
            unread.push(answer);
        }
        tokio::task::block_in_place(works)?;
        anyhow::Ok(codes)
    })?;
    ensure!(codes.keys().all(|code| [200, 429].contains(code)) && codes.len() == 2, "{codes:?}");
    memory.is_bounded()?;
    // The memory of canceled requests is free again.
    http.run(async {
        let session = http.session(port, &cluster, 1 << 20).await?;
        let read = timeout(RESPONSE_TIMEOUT, async {
            loop {
                let answer = session.send(list(&cluster, PROTOBUF)?, true).await?.0.await?;
                if answer.status() != 429 {
                    ensure!(answer.status() == 200, "{answer:?}");
                    return read(answer.into_body()).await;
                }
            }
        });
        let read = read.await.context("the memory is not freed")??;
        ensure!(read > OBJECTS * LENGTH, "{read} bytes");
        anyhow::Ok(())
    })
}

/// Each list occupies seats of the API server, until it is sent or canceled.
async fn streams_make_room(http: &Http2, port: u16, cluster: &str, other: &Kubectl) -> anyhow::Result<()> {
    let session = http.session(port, cluster, 0).await?;
    let mut unread = Vec::new();
    for _ in 0..READERS {
        unread.push(session.send(list(cluster, JSON)?, true).await?.0);
    }
    tokio::task::block_in_place(|| {
        (0..5).try_for_each(|_| other.ok(&["get", "pods", "--request-timeout=30s"]).map(drop))
    })?;
    for answer in &mut unread {
        let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("a list got no response")??;
        // Lists that get no seat in time get an error.
        ensure!([200, 429].contains(&answer.status().as_u16()), "{answer:?}");
    }
    let again = timeout(RESPONSE_TIMEOUT, async {
        loop {
            let answer = session.send(list(cluster, JSON)?, true).await?.0.await?;
            if answer.status() == 200 {
                return anyhow::Ok(());
            }
        }
    });
    again.await.context("no seat becomes free")?
}

fn list(cluster: &str, accept: &str) -> anyhow::Result<Request<()>> {
    let uri = format!("https://{cluster}.atoll.internal/api/v1/namespaces/long/configmaps");
    Ok(Request::get(uri).header("accept", accept).body(())?)
}

/// Creates this number of objects in a new namespace.
pub(super) fn fill(site: &VirtualSite, cluster: &str, objects: usize) -> anyhow::Result<()> {
    let kubectl = site.administrator(cluster, Route::Path)?;
    kubectl.ok(&["create", "namespace", "long"])?;
    let text = "x".repeat(LENGTH);
    for number in 0..objects {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("long-{number}"), "namespace": "long"},
            "data": {"text": text},
        });
        kubectl.ok_with(&["create", "-f", "-"], &object.to_string())?;
    }
    Ok(())
}
