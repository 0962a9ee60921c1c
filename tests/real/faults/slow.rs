//! Clients that open watches through the hub, and do not read them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::Session;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::virtual_site::Sharing;
use atoll_tests::{Credentials, Curl, HostCluster, Http2, eventually};
use h2::RecvStream;
use http::Request;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::pair::{MAPS, Pair};

/// The number of watches that nobody reads.
const SLOW: usize = 16;

/// The size of an event.
const SIZE: usize = 240 << 10;

/// These events fit into the memory of the hub.
const EARLY: usize = 24;

/// These and the early ones do not.
const ALL: usize = 48;

const MEMORY_MIB: u32 = 8;

/// The slow watches together would get 180 MiB.
const MEMORY: u64 = 64 << 20;

/// Even with too little memory, events stay in the hub for 15 s.
const MINIMUM: Duration = Duration::from_secs(16);

/// The time limit until the events are this old.
const AGED: Duration = Duration::from_secs(60);

/// The time limit for the rest of a watch.
const READ: Duration = Duration::from_secs(60);

/// The memory does not grow with the number of slow watches. When the hub has removed the next event of such a watch, the watch
/// ends without an error, like one of kube-apiserver, and the client resumes. All other watches have all events.
pub(super) fn watches_end_and_cost_no_memory(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::with(host, "slow", Sharing { memory_mib: MEMORY_MIB, ..Sharing::default() })?;
    let [a, b] = pair.names.each_ref().map(String::as_str);
    for kubectl in pair.kubectls()? {
        kubectl.ok(&["create", "configmap", "written", "-n", "default"])?;
    }
    let clients = pair.kubectls()?.map(|kubectl| Http2::with(&Credentials::of(&kubectl)?));
    let [http, other] = clients;
    let (http, other, port) = (http?, other?, pair.site.site().ports.endpoint);
    let (served, from) = (pair.served()?, pair.version()?);
    let sessions = [http.run(http.session(port, a, 1 << 20))?, other.run(other.session(port, b, 1 << 20))?];
    let here = http.spawn(events(http.run(open(&sessions[0], a, &from))?, ALL));
    let there = other.spawn(events(other.run(open(&sessions[1], b, &from))?, 2));
    let slow = http.run(http.session(port, a, 1 << 16))?;
    let mut unread = Vec::new();
    for _ in 0..SLOW {
        unread.push(http.run(open(&slow, a, &from))?);
    }
    ensure!(pair.served()? == served + SLOW as u64 + 2, "the hub does not serve all watches");

    let (memory, begun) = (pair.site.agent().memory()?, Instant::now());
    for number in 0..EARLY {
        write(&pair, a, number)?;
    }
    write(&pair, b, 0)?;
    // Then, the last of them is old enough, too.
    let age = (MINIMUM + begun.elapsed()).as_secs();
    eventually(AGED, || {
        let feed = pair.feed(MAPS)?;
        ensure!(feed["windowSeconds"].as_u64() >= Some(age), "{feed}");
        Ok(())
    })?;
    for number in EARLY..ALL {
        write(&pair, a, number)?;
    }
    write(&pair, b, 1)?;
    eventually(CONDITION_TIMEOUT, || {
        let feed = pair.feed(MAPS)?;
        ensure!(feed["bytes"].as_u64() <= Some(u64::from(MEMORY_MIB) << 20), "{feed}");
        ensure!(feed["events"].as_u64() < Some(ALL as u64), "{feed}");
        Ok(())
    })?;
    let feed = pair.feed(MAPS)?;
    ensure!(feed["closed"].is_null(), "the hub has removed more than events: {feed}");
    for (client, watch, count) in [(&http, here, ALL), (&other, there, 2)] {
        are_in_order(&client.run(async { timeout(READ, watch).await }).context("a watch lacks events")???, 0..count)?;
    }
    let mut resumed = None;
    // All of them at the same time, because they share the window of a connection.
    let unread: Vec<_> = unread.into_iter().map(|body| http.spawn(events(body, ALL))).collect();
    for watch in unread {
        let seen = http.run(async { timeout(READ, watch).await }).context("a slow watch does not end")???;
        ensure!(seen.len() < ALL, "the slow watch has all events");
        are_in_order(&seen, 0..seen.len())?;
        resumed = Some(seen);
    }
    let peak = pair.site.agent().peak()?;
    ensure!(peak < memory + MEMORY, "{} MiB more than {} MiB", (peak - memory) >> 20, memory >> 20);

    let seen = resumed.context("no slow watch")?;
    let last =
        seen.last().map_or(&*from, |event| event["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default());
    let rest = http.run(open(&sessions[0], a, last))?;
    let rest = http
        .run(async { timeout(READ, events(rest, ALL - seen.len())).await })
        .context("the client cannot resume")??;
    are_in_order(&rest, seen.len()..ALL)
}

/// Begins a watch after a version.
async fn open(session: &Session, cluster: &str, version: &str) -> anyhow::Result<RecvStream> {
    let uri = format!("https://{cluster}.atoll.internal{MAPS}?watch=1&resourceVersion={version}");
    let (response, _) = session.send(Request::get(uri).body(())?, true).await?;
    let response = response.await?;
    ensure!(response.status() == 200, "{}", response.status());
    Ok(response.into_body())
}

/// The next events, at most `count`. Fewer if the watch ends without an error.
async fn events(mut body: RecvStream, count: usize) -> anyhow::Result<Vec<Value>> {
    let (mut text, mut lines) = (Vec::new(), 0);
    while lines < count {
        let Some(chunk) = body.data().await else { break };
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        text.extend_from_slice(&chunk);
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

fn are_in_order(events: &[Value], numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let shown = |event: &Value| event["object"]["data"]["number"].as_str().unwrap_or_default().to_owned();
    let shown: Vec<_> = events.iter().map(shown).collect();
    let expected: Vec<_> = numbers.map(|number| number.to_string()).collect();
    ensure!(shown == expected, "{shown:?} instead of {expected:?}");
    Ok(())
}

/// Changes an object of this cluster directly at the host, so that its size costs the agent nothing.
fn write(pair: &Pair, cluster: &str, number: usize) -> anyhow::Result<()> {
    let host = pair.site.host();
    let servers = host.api_servers()?;
    let curl = Curl::directly(servers.first().context("no API server")?, &host.dir().join("pki/ca.crt"));
    let curl = curl.with_token(&host.token_of("operator")?);
    let path = format!("/api/v1/namespaces/default-{cluster}/configmaps/written");
    let patch = json!({"data": {"number": number.to_string(), "text": "x".repeat(SIZE)}});
    let written = curl.send_as("PATCH", &path, "application/merge-patch+json", &patch.to_string())?;
    ensure!(written.code == 200, "{}", written.body);
    Ok(())
}
