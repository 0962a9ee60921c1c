//! What an idle member receives from Karmada's controllers, as the audit log of a member shows it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use memchr::memmem;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::site::{JSON, Member};

/// The requests of the cluster status controller (`pkg/controllers/status/cluster_status_controller.go`).
const ROUND: [&str; 4] = ["/readyz?timeout=32s", "/version?timeout=32s", "/api?timeout=32s", "/apis?timeout=32s"];
/// `--cluster-status-update-frequency`.
const ROUND_INTERVAL: Duration = Duration::from_secs(10);

/// The informers that last until the client ends them: those of the resources that Karmada has pushed, and of the objects that
/// it always creates in a member.
const SHORT: [&str; 5] = [
    "/api/v1/services",
    "/api/v1/namespaces",
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
];
/// The time limit of the client of these informers (`timeout` of its REST configuration). Each of their watches ends after it.
const SHORT_WATCH: Duration = Duration::from_secs(32);
/// The informers of the cluster status controller, whose client has no time limit. They last until the server ends them.
const LONG: [&str; 2] = ["/api/v1/nodes", "/api/v1/pods"];

/// The `resourceVersion` in a list or in an event.
const VERSION: &[u8] = br#""resourceVersion":""#;

/// The watches of an idle member.
pub(super) struct Watches(Vec<Watch>);

/// A watch, between its requests.
struct Watch {
    path: &'static str,
    /// After which the client ends each request. `None`: never.
    lasts: Option<Duration>,
    version: String,
}

/// Sends the requests of one round.
pub(super) async fn round(member: &Member) -> anyhow::Result<()> {
    for path in ROUND {
        member.succeed(Method::GET, path, String::new()).await?;
    }
    Ok(())
}

/// Sends a round every ten seconds for this time.
pub(super) async fn rounds(member: &Member, time: Duration) -> anyhow::Result<()> {
    let end = Instant::now() + time;
    let mut ticks = interval(ROUND_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() + ROUND_INTERVAL / 2 < end {
        ticks.tick().await;
        round(member).await?;
    }
    tokio::time::sleep_until(end).await;
    Ok(())
}

// === impl Watches ===

impl Watches {
    /// Lists the resources. The watches continue from these lists.
    pub(super) async fn open(member: &Member) -> anyhow::Result<Self> {
        let paths = SHORT.map(|path| (path, Some(SHORT_WATCH))).into_iter().chain(LONG.map(|path| (path, None)));
        let mut watches = Vec::new();
        for (path, lasts) in paths {
            let list = format!("{path}?limit=500&resourceVersion=0");
            let list = member.succeed(Method::GET, &list, String::new()).await?;
            let version = first_version(&list).with_context(|| format!("{path} has no resourceVersion"))?;
            watches.push(Watch { path, lasts, version });
        }
        Ok(Self(watches))
    }

    /// Watches, and opens each watch again when it ends. Returns only if one fails.
    pub(super) async fn renew(self, member: &Arc<Member>) -> anyhow::Result<Infallible> {
        let mut watches = JoinSet::new();
        for watch in self.0 {
            watches.spawn(watch.renew(Arc::clone(member)));
        }
        watches.join_next().await.context("there are no watches")?.context("a watch failed")?
    }
}

// === impl Watch ===

impl Watch {
    async fn renew(mut self, member: Arc<Member>) -> anyhow::Result<Infallible> {
        loop {
            match self.lasts {
                Some(lasts) => timeout(lasts, self.watch(&member)).await.unwrap_or(Ok(()))?,
                None => self.watch(&member).await?,
            }
        }
    }

    /// One request.
    async fn watch(&mut self, member: &Member) -> anyhow::Result<()> {
        // client-go asks for a random time between five and ten minutes.
        let seconds = 300 + self.path.len() * 7;
        let timeout =
            if self.lasts.is_some() { "32s".to_owned() } else { format!("{}m{}s", seconds / 60, seconds % 60) };
        let uri = format!(
            "{}?allowWatchBookmarks=true&resourceVersion={}&timeout={timeout}&timeoutSeconds={seconds}&watch=true",
            self.path, self.version
        );
        let response = member.send(Method::GET, &uri, JSON, String::new()).await?;
        ensure!(response.status().is_success(), "{uri}: {}", response.status());
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data()
                && let Some(version) = last_version(&data)
            {
                self.version = version;
            }
        }
        Ok(())
    }
}

/// The version of a list: its metadata precede its items.
fn first_version(list: &Bytes) -> Option<String> {
    version_at(list, memmem::find(list, VERSION)?)
}

/// The version of the last event in these bytes. kube-apiserver sends an event at a time, and the objects in an idle cluster
/// have no field of this name besides their own.
fn last_version(events: &Bytes) -> Option<String> {
    version_at(events, memmem::rfind(events, VERSION)?)
}

fn version_at(bytes: &[u8], at: usize) -> Option<String> {
    let rest = bytes.get(at + VERSION.len()..)?;
    let version = rest.get(..memchr::memchr(b'"', rest)?)?;
    Some(std::str::from_utf8(version).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_list_and_of_events() {
        let list = Bytes::from_static(
            br#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"resourceVersion":"3"}}]}"#,
        );
        assert_eq!(first_version(&list).as_deref(), Some("9"));
        let events = Bytes::from_static(
            br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"10"}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}"#,
        );
        assert_eq!(last_version(&events).as_deref(), Some("12"));
        assert_eq!(last_version(&Bytes::from_static(br#""resourceVersion":"1"#)), None);
    }
}
