//! Whoever changes the ConfigMaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use ops::drain::Tasks;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::deliveries::Written;
use super::stamp::Stamp;
use crate::client::{self, Connection};
use crate::load::pace::{Exchange, Failure, FailureKind};
use crate::target::Target;

/// What all writers share: the connection, and the number of the next change.
pub(super) struct Desk {
    target: Target,
    tasks: Tasks,
    path: String,
    open: Mutex<Connection<Full<Bytes>>>,
    next: AtomicU32,
}

/// Changes one ConfigMap again and again.
pub(super) struct Writer {
    desk: Arc<Desk>,
    object: u32,
    written: Arc<Written>,
    epoch: Instant,
}

/// What all of them have, as it stands in a query.
pub(super) const SELECTOR: &str = "bench%3Dwatch";
/// More than that of an error is not shown.
const LONGEST_ERROR: usize = 300;

// === impl Desk ===

impl Desk {
    pub(super) async fn open(target: Target, tasks: Tasks, namespace: &str) -> anyhow::Result<Arc<Self>> {
        let open = Connection::open(&target, &tasks).await.context("cannot connect to write")?;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        Ok(Arc::new(Self { target, tasks, path, open: Mutex::new(open), next: AtomicU32::new(0) }))
    }

    /// Makes the objects; what an earlier run left is used.
    pub(super) async fn set_out(&self, objects: u32) -> anyhow::Result<()> {
        for object in 0..objects {
            let name = name(object);
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"bench":"watch"}}}}}}"#
            );
            let (status, body) = self.send(Method::POST, &self.path, "application/json", body).await?;
            if !status.is_success() && status != StatusCode::CONFLICT {
                bail!("cannot make the ConfigMap {name}: {status}: {}", readable(&body));
            }
        }
        Ok(())
    }

    /// Takes the objects away.
    pub(super) async fn clear(&self, objects: u32) -> anyhow::Result<()> {
        for object in 0..objects {
            let path = format!("{}/{}", self.path, name(object));
            let (status, body) = self.send(Method::DELETE, &path, "application/json", String::new()).await?;
            if !status.is_success() && status != StatusCode::NOT_FOUND {
                bail!("cannot delete the ConfigMap {}: {status}: {}", name(object), readable(&body));
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        media: &'static str,
        body: String,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let uri = self.target.uri(path)?;
        let mut request = client::request(&self.target, method, uri, Full::new(Bytes::from(body)));
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        let response = self.connection().await?.send(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    async fn connection(&self) -> anyhow::Result<Connection<Full<Bytes>>> {
        let mut open = self.open.lock().await;
        if !open.is_open() {
            *open = Connection::open(&self.target, &self.tasks).await?;
        }
        open.share().context("an HTTP/2 connection can be shared")
    }
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(desk: Arc<Desk>, object: u32, written: Arc<Written>, epoch: Instant) -> Self {
        Self { desk, object, written, epoch }
    }
}

impl Exchange for Writer {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        let number = self.desk.next.fetch_add(1, Ordering::Relaxed);
        let path = format!("{}/{}", self.desk.path, name(self.object));
        let patch = Stamp { number, sent: self.epoch.elapsed() }.patch();
        let sent = self.desk.send(Method::PATCH, &path, "application/merge-patch+json", patch).await;
        match sent {
            Ok((status, body)) if status.is_success() => {
                self.written.confirm(number);
                Ok(body.len() as u64)
            }
            Ok((status, body)) => Err(Failure { kind: FailureKind::Status(status.as_u16()), example: readable(&body) }),
            Err(error) => Err(Failure { kind: FailureKind::Broken, example: format!("{error:#}") }),
        }
    }
}

fn name(object: u32) -> String {
    format!("bench-watch-{object}")
}

fn readable(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(LONGEST_ERROR).collect()
}
