//! Lists that nobody reads: those in protobuf are held in memory, and those in JSON occupy the host.

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

const PATIENCE: Duration = Duration::from_secs(90);

/// Of nearly a megabyte each: together not much less than the longest list that is sent.
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
            eventually(PATIENCE, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]))?;
        }
        // Objects and request bodies have a budget of their own.
        eventually(PATIENCE, || kubectl.ok(&["create", "configmap", "small", "--dry-run=server"]).map(drop))
    };
    works()?;
    let memory = Memory::measure(&site)?;
    http.run(streams_make_room(&http, port, &cluster, &other))?;
    let codes = http.run(async {
        // No stream may send a byte: all of it waits.
        let session = http.session(port, &cluster, 0).await?;
        let mut answers = Vec::new();
        for _ in 0..READERS {
            answers.push(session.send(list(&cluster, PROTOBUF)?, true).await?.0);
        }
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        let mut unread = Vec::new();
        for answer in answers {
            let answer = timeout(PATIENCE, answer).await.context("a list was never answered")??;
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
    // What nobody waits for any more is free again.
    http.run(async {
        let session = http.session(port, &cluster, 1 << 20).await?;
        let read = timeout(PATIENCE, async {
            loop {
                let answer = session.send(list(&cluster, PROTOBUF)?, true).await?.0.await?;
                if answer.status() != 429 {
                    ensure!(answer.status() == 200, "{answer:?}");
                    return read(answer.into_body()).await;
                }
            }
        });
        let read = read.await.context("the memory was never freed")??;
        ensure!(read > OBJECTS * LENGTH, "{read} bytes");
        anyhow::Ok(())
    })
}

/// Each occupies seats of the API server that other clusters need, until it is sent or given up.
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
        let answer = timeout(PATIENCE, answer).await.context("a list was never answered")??;
        // Those that get no place in time are told so.
        ensure!([200, 429].contains(&answer.status().as_u16()), "{answer:?}");
    }
    let again = timeout(PATIENCE, async {
        loop {
            let answer = session.send(list(cluster, JSON)?, true).await?.0.await?;
            if answer.status() == 200 {
                return anyhow::Ok(());
            }
        }
    });
    again.await.context("no place is ever free again")?
}

fn list(cluster: &str, accept: &str) -> anyhow::Result<Request<()>> {
    let uri = format!("https://{cluster}.atoll.internal/api/v1/namespaces/long/configmaps");
    Ok(Request::get(uri).header("accept", accept).body(())?)
}

/// So many objects in a namespace of that name.
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
