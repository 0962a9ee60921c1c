//! Incomplete requests without credentials, or with invalid ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::{Session, upload};
use atoll_tests::{Credentials, HostCluster, Http2, Kubectl, Route, eventually, pause};
use bytes::Bytes;
use http::{Request, Version};
use tokio::time::timeout;

use super::{Memory, site};

/// The clients together open as many streams as a tunnel allows.
const CONNECTIONS: usize = 41;
const STREAMS: usize = 250;

/// The time limit. It is long, because the test only checks that requests end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn unauthenticated_clients_block_nobody(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, victim, other) = site(host, "strangers", "")?;
    let other = site.administrator(&other, Route::Path)?;
    let own = site.administrator(&victim, Route::Path)?;
    for kubectl in [&other, &own] {
        works(kubectl)?;
    }
    let memory = Memory::measure(&site)?;
    let http = Http2::anonymous(&Credentials::of(&other)?.authority)?;
    let port = site.site().ports.endpoint;
    let (codes, sessions) = http.run(async {
        let (mut streams, mut sessions) = (Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            let session = http.session(port, &victim, 65_535).await?;
            for _ in 0..STREAMS {
                streams.push(session.send(post(&victim, "")?, false).await?);
            }
            sessions.push(session);
        }
        // The bodies do not come. Clients with credentials are still served.
        tokio::task::block_in_place(|| [&other, &own].into_iter().cycle().take(10).try_for_each(works))?;
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        for (answer, mut body) in streams {
            let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("a request got no response")??;
            *codes.entry(answer.status().as_u16()).or_default() += 1;
            // The server does not need the rest of the request.
            let reset = timeout(RESPONSE_TIMEOUT, std::future::poll_fn(|cx| body.poll_reset(cx))).await;
            let reason = reset.context("a stream is still open after its response")??;
            ensure!(reason == h2::Reason::NO_ERROR, "{reason:?}");
        }
        anyhow::Ok((codes, sessions))
    })?;
    let all: usize = codes.values().sum();
    ensure!(all == CONNECTIONS * STREAMS, "{codes:?}");
    ensure!(codes.keys().all(|code| [401, 403, 429].contains(code)) && codes.contains_key(&403), "{codes:?}");
    works(&own)?;
    memory.is_bounded()?;
    drop(sessions);
    Ok(())
}

/// One connection without credentials, and one with invalid tokens. The agent must ask the host about tokens, and the
/// client can send requests in the meantime.
pub(super) fn unauthenticated_uploads_use_little_memory(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let body = Bytes::from(vec![b' '; 2_900_000]);
    let (site, victim, other) = site(host, "uploads", "")?;
    let other = site.administrator(&other, Route::Path)?;
    let own = site.administrator(&victim, Route::Path)?;
    for kubectl in [&other, &own] {
        works(kubectl)?;
    }
    let memory = Memory::measure(&site)?;
    let http = Http2::anonymous(&Credentials::of(&other)?.authority)?;
    let port = site.site().ports.endpoint;
    let codes = http.run(async {
        let mut uploads = Vec::new();
        let session: Session = http.session(port, &victim, 65_535).await?;
        for number in 0..100 {
            let token = if number % 2 == 0 { String::new() } else { format!("Bearer stranger-{number}") };
            let (answer, mut stream) = session.send(post(&victim, &token)?, false).await?;
            let body = body.clone();
            uploads.push(async move {
                let sent = upload(&mut stream, body, true);
                let (answer, ()) = tokio::join!(timeout(RESPONSE_TIMEOUT, answer), sent);
                anyhow::Ok(answer.context("a request got no response")??.status().as_u16())
            });
        }
        tokio::task::block_in_place(|| [&other, &own].into_iter().cycle().take(4).try_for_each(works))?;
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        let mut running = tokio::task::JoinSet::new();
        for upload in uploads {
            running.spawn(upload);
        }
        while let Some(code) = running.join_next().await {
            *codes.entry(code??).or_default() += 1;
        }
        anyhow::Ok(codes)
    })?;
    ensure!(codes.keys().all(|code| [401, 403, 429].contains(code)) && codes.contains_key(&403), "{codes:?}");
    works(&own)?;
    memory.is_bounded()
}

/// The limit of requests that a client resets.
pub(super) fn resets_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    /// More resets than the limit allows in the time of the test.
    const RESETS: usize = 400;
    const AT_ONCE: usize = 40;
    let (site, cluster, other) = site(host, "resets", "")?;
    let (kubectl, other) = (site.administrator(&cluster, Route::Path)?, site.administrator(&other, Route::Path)?);
    let http = Http2::with(&Credentials::of(&kubectl)?)?;
    let port = site.site().ports.endpoint;
    let code = http.run(async {
        let session = http.session(port, &cluster, 65_535).await?;
        let get = Request::get(format!("https://{cluster}.atoll.internal/api/v1/namespaces/default/configmaps"));
        let get = get.body(Bytes::new())?;
        for _ in 0..RESETS / AT_ONCE {
            let mut streams = Vec::new();
            for _ in 0..AT_ONCE {
                // These requests get no response, because their bodies do not come.
                streams.push(session.send(post(&cluster, "")?, false).await?);
            }
            // They have arrived when this request has a response.
            session.exchange(get.clone()).await?;
            drop(streams);
        }
        anyhow::Ok(session.exchange(get).await?.0)
    })?;
    ensure!(code == 429, "after {RESETS} resets: {code}");
    works(&other)?;
    // The limit allows them after some time.
    works(&kubectl)
}

/// The server accepts all streams, because it does not know in advance which of them are reset. Each counts for a tenth
/// of a second, so too many of them block the client for many seconds.
pub(super) fn resets_at_once_all_count(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const CONNECTIONS: usize = 2;
    /// Ten times the time for which one reset counts.
    const MOMENT: Duration = Duration::from_secs(1);
    let (site, cluster, _) = site(host, "at-once", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let http = Http2::with(&Credentials::of(&kubectl)?)?;
    let port = site.site().ports.endpoint;
    let session = http.run(http.session(port, &cluster, 65_535))?;
    let get = Request::get(format!("https://{cluster}.atoll.internal/api/v1/namespaces/default/configmaps"));
    let get = get.body(Bytes::new())?;
    http.run(async {
        let (mut streams, mut sessions) = (Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            let session = http.session(port, &cluster, 65_535).await?;
            for _ in 1..STREAMS {
                let mut request = post(&cluster, "")?;
                // Long bodies have a separate limit. This body does not come either.
                request.headers_mut().insert("content-length", 2.into());
                streams.push(session.send(request, false).await?);
            }
            // They have arrived when this request has a response.
            ensure!(session.exchange(get.clone()).await?.0 == 200);
            sessions.push(session);
        }
        drop(streams);
        // Their resets have arrived when this request has a response.
        for session in &sessions {
            session.exchange(get.clone()).await?;
        }
        anyhow::Ok(())
    })?;
    for _ in 0..3 {
        pause(MOMENT);
        let code = http.run(session.exchange(get.clone()))?.0;
        ensure!(code == 429, "after {CONNECTIONS} times {STREAMS} resets: {code}");
    }
    Ok(())
}

fn post(cluster: &str, authorization: &str) -> anyhow::Result<Request<()>> {
    let mut request = Request::post(format!("https://{cluster}.atoll.internal/api/v1/namespaces/default/configmaps"))
        .version(Version::HTTP_2)
        .header("content-type", "application/json");
    if !authorization.is_empty() {
        request = request.header("authorization", authorization);
    }
    Ok(request.body(())?)
}

fn works(kubectl: &Kubectl) -> anyhow::Result<()> {
    eventually(RESPONSE_TIMEOUT, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop))
}
