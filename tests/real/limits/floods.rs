//! Requests without credentials, or with wrong ones, of which only the beginning is sent.

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

/// Together as many streams as a tunnel carries.
const CONNECTIONS: usize = 41;
const STREAMS: usize = 250;

/// Long enough for the slowest machine: what is tried is that it comes to an end at all.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn strangers_stop_nobody(host: Arc<HostCluster>) -> anyhow::Result<()> {
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
        // Nothing more is sent. Who has credentials is served all the same.
        tokio::task::block_in_place(|| [&other, &own].into_iter().cycle().take(10).try_for_each(works))?;
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        for (answer, mut body) in streams {
            let answer = timeout(PATIENCE, answer).await.context("a request was never answered")??;
            *codes.entry(answer.status().as_u16()).or_default() += 1;
            // The rest of the request is not wanted any more.
            let reset = timeout(PATIENCE, std::future::poll_fn(|cx| body.poll_reset(cx))).await;
            let reason = reset.context("a stream was kept after its answer")??;
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

/// One connection without credentials, and with tokens that are none. Of those somebody has to be asked, and meanwhile their
/// owner may send what it likes.
pub(super) fn uploads_of_strangers_fill_nothing(host: Arc<HostCluster>) -> anyhow::Result<()> {
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
                let (answer, ()) = tokio::join!(timeout(PATIENCE, answer), sent);
                anyhow::Ok(answer.context("a request was never answered")??.status().as_u16())
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

/// The agent and the host begin to answer what a client resets, however often it does that.
pub(super) fn resets_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    /// More than are forgiven at once, in spite of the time that it takes.
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
                // They are not answered, because their bodies never come.
                streams.push(session.send(post(&cluster, "")?, false).await?);
            }
            // They have arrived when this one is answered.
            session.exchange(get.clone()).await?;
            drop(streams);
        }
        anyhow::Ok(session.exchange(get).await?.0)
    })?;
    ensure!(code == 429, "after {RESETS} resets: {code}");
    works(&other)?;
    // They are forgiven.
    works(&kubectl)
}

/// All of them are admitted, because nothing is known of any when they are opened. Each is forgiven after a tenth of a second,
/// so those that are too many keep the client from its next request for many seconds.
pub(super) fn resets_at_once_all_count(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const CONNECTIONS: usize = 2;
    /// Ten times as long as one request needs to be forgiven.
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
                // Bodies that may be long are limited by themselves. This one never comes either.
                request.headers_mut().insert("content-length", 2.into());
                streams.push(session.send(request, false).await?);
            }
            // They have arrived when this one is answered.
            ensure!(session.exchange(get.clone()).await?.0 == 200);
            sessions.push(session);
        }
        drop(streams);
        // And their ends have, when this one is.
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
    eventually(PATIENCE, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop))
}
