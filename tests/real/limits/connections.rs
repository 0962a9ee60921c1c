//! Connections on which nothing is said, or nothing more.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::ended;
use atoll_tests::{Credentials, Curl, HostCluster, Http2, Route, eventually};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use super::site;

/// Longer than any of them may last.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) fn silent_ones_end(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, _) = site(host, "silent", "proxy: {tls: true}")?;
    let http = Http2::anonymous(&Credentials::of(&site.administrator(&cluster, Route::Path)?)?.authority)?;
    let ports = site.site().ports;
    http.run(async {
        tokio::try_join!(
            is_ended("without TLS at the proxy", http.tcp(ports.proxy)),
            is_ended("without TLS at the endpoint", http.tcp(ports.endpoint)),
            is_ended("without TLS at the agents' listener", http.tcp(ports.agents)),
            is_ended("without a request", http.direct(ports.endpoint, &cluster)),
            is_ended("without a request, through the proxy", http.proxied(ports.proxy, &cluster)),
        )
    })?;
    Ok(())
}

async fn is_ended<S>(what: &str, connection: impl Future<Output = anyhow::Result<S>>) -> anyhow::Result<()>
where
    S: AsyncRead + Unpin,
{
    let connection = connection.await.with_context(|| format!("no connection {what}"))?;
    timeout(PATIENCE, ended(connection)).await.with_context(|| format!("{what} a connection goes on"))
}

/// A quarter of the places is all that one address may have. Those behind a CONNECT count, and so do those of clients with
/// credentials; but only the others' make room.
pub(super) fn idle_ones_make_room(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const MOST: usize = 24;
    let keys = format!("proxy: {{tls: true}}\nlimits: {{connections: {MOST}, connectionsPerAddress: {MOST}}}");
    let (site, cluster, _) = site(host, "idle", &keys)?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let credentials = Credentials::of(&kubectl)?;
    let (stranger, member) = (Http2::anonymous(&credentials.authority)?, Http2::with(&credentials)?);
    let ports = site.site().ports;
    member.run(async {
        let own = member.session(ports.endpoint, &cluster, 65_535).await?;
        let version = async || {
            let request = http::Request::get(format!("https://{cluster}.atoll.internal/version")).body(())?;
            let (answer, _) = own.send(request, true).await?;
            ensure!(timeout(PATIENCE, answer).await??.status() == 200);
            Ok(())
        };
        version().await?;
        let mut crowd = tokio::task::JoinSet::new();
        let mut refused = 0;
        for number in 0..3 * MOST {
            let connected = if number % 2 == 0 {
                stranger.direct(ports.endpoint, &cluster).await.map(|stream| crowd.spawn(ended(stream)))
            } else {
                stranger.proxied(ports.proxy, &cluster).await.map(|stream| crowd.spawn(ended(stream)))
            };
            // Where all are so young that none may be ended, the new one is.
            refused += usize::from(connected.is_err());
        }
        let curl = Curl::plain(&format!("127.0.0.1:{}", ports.admin));
        eventually(PATIENCE, || {
            let metrics = curl.get("/metrics")?.body;
            let open = metrics.lines().find_map(|line| line.strip_prefix("atoll_client_connections "));
            let open: usize = open.context("no atoll_client_connections")?.parse()?;
            ensure!(open <= MOST, "{open} connections, and {refused} were refused");
            Ok(())
        })?;
        // Newcomers find a place, for the crowd's are not worth more than theirs.
        eventually(PATIENCE, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop))?;
        // And who had one has kept it.
        version().await
    })
}

/// However many users a cluster has, and whatever each of them may have.
pub(super) fn a_cluster_has_its_part(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const MOST: usize = 4;
    let keys = format!("limits: {{connections: 24, connectionsPerUser: 24, connectionsPerCluster: {MOST}}}");
    let (site, cluster, other) = site(host, "part", &keys)?;
    let member = Http2::with(&Credentials::of(&site.administrator(&cluster, Route::Path)?)?)?;
    let other = site.administrator(&other, Route::Path)?;
    let endpoint = site.site().ports.endpoint;
    member.run(async {
        let mut open = Vec::new();
        for number in 0..=MOST {
            let session = member.session(endpoint, &cluster, 65_535).await?;
            let request = http::Request::get(format!("https://{cluster}.atoll.internal/version")).body(())?;
            let (answer, _) = session.send(request, true).await?;
            let status = timeout(PATIENCE, answer).await??.status();
            ensure!(status == if number < MOST { 200 } else { 429 }, "connection {number}: {status}");
            open.push(session);
        }
        other.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop)
    })
}
