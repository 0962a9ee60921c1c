//! Idle connections, and connections with incomplete requests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::ended;
use atoll_tests::{Credentials, Curl, HostCluster, Http2, Route, eventually};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use super::site;

/// Longer than the maximum duration of such a connection.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

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
    timeout(RESPONSE_TIMEOUT, ended(connection)).await.with_context(|| format!("{what} a connection goes on"))
}

/// One address can have a quarter of the connections. Connections through CONNECT and those of clients with credentials
/// count too, but the server closes only the others for new ones.
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
            let (response, _) = own.send(request, true).await?;
            ensure!(timeout(RESPONSE_TIMEOUT, response).await??.status() == 200);
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
            // If all connections are too new to be closed, the server closes the new one.
            refused += usize::from(connected.is_err());
        }
        let curl = Curl::plain(&format!("127.0.0.1:{}", ports.admin));
        eventually(RESPONSE_TIMEOUT, || {
            let metrics = curl.get("/metrics")?.body;
            let open = metrics.lines().find_map(|line| line.strip_prefix("atoll_client_connections "));
            let open: usize = open.context("no atoll_client_connections")?.parse()?;
            ensure!(open <= MOST, "{open} connections, and {refused} were refused");
            Ok(())
        })?;
        // New clients can connect, because the server closes older connections without credentials.
        eventually(RESPONSE_TIMEOUT, || kubectl.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop))?;
        // Existing connections with credentials stay open.
        version().await
    })
}

/// The limit of a cluster, independent of the number of its users and of their limits.
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
            let (response, _) = session.send(request, true).await?;
            let status = timeout(RESPONSE_TIMEOUT, response).await??.status();
            ensure!(status == if number < MOST { 200 } else { 429 }, "connection {number}: {status}");
            open.push(session);
        }
        other.ok(&["get", "namespaces", "--request-timeout=10s"]).map(drop)
    })
}
