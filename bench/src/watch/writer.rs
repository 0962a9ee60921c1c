//! Writes the ConfigMaps.

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

/// The shared state of all writers: the connection, and the number of the next change.
pub(super) struct ConfigMaps {
    target: Target,
    tasks: Tasks,
    path: String,
    open: Mutex<Connection<Full<Bytes>>>,
    next: AtomicU32,
}

/// Changes one ConfigMap repeatedly.
pub(super) struct Writer {
    config_maps: Arc<ConfigMaps>,
    object: u32,
    written: Arc<Written>,
    epoch: Instant,
}

/// The label selector of all ConfigMaps, encoded for a query.
pub(super) const SELECTOR: &str = "bench%3Dwatch";
/// The maximum number of characters of an error message.
const MAX_ERROR: usize = 300;

// === impl ConfigMaps ===

impl ConfigMaps {
    pub(super) async fn open(target: Target, tasks: Tasks, namespace: &str) -> anyhow::Result<Arc<Self>> {
        let open = Connection::open(&target, &tasks).await.context("cannot connect for writes")?;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        Ok(Arc::new(Self { target, tasks, path, open: Mutex::new(open), next: AtomicU32::new(0) }))
    }

    /// Creates the objects. Objects of an earlier run are reused.
    pub(super) async fn create(&self, objects: u32) -> anyhow::Result<()> {
        for object in 0..objects {
            let name = name(object);
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"bench":"watch"}}}}}}"#
            );
            let (status, body) = self.send(Method::POST, &self.path, "application/json", body).await?;
            if !status.is_success() && status != StatusCode::CONFLICT {
                bail!("cannot create ConfigMap {name}: {status}: {}", excerpt(&body));
            }
        }
        Ok(())
    }

    /// Deletes the objects.
    pub(super) async fn delete(&self, objects: u32) -> anyhow::Result<()> {
        for object in 0..objects {
            let path = format!("{}/{}", self.path, name(object));
            let (status, body) = self.send(Method::DELETE, &path, "application/json", String::new()).await?;
            if !status.is_success() && status != StatusCode::NOT_FOUND {
                bail!("cannot delete ConfigMap {}: {status}: {}", name(object), excerpt(&body));
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
        open.share().context("the connection cannot be shared")
    }
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(config_maps: Arc<ConfigMaps>, object: u32, written: Arc<Written>, epoch: Instant) -> Self {
        Self { config_maps, object, written, epoch }
    }
}

impl Exchange for Writer {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        let number = self.config_maps.next.fetch_add(1, Ordering::Relaxed);
        let path = format!("{}/{}", self.config_maps.path, name(self.object));
        let patch = Stamp { number, sent: self.epoch.elapsed() }.patch();
        let sent = self.config_maps.send(Method::PATCH, &path, "application/merge-patch+json", patch).await;
        match sent {
            Ok((status, body)) if status.is_success() => {
                self.written.confirm(number);
                Ok(body.len() as u64)
            }
            Ok((status, body)) => Err(Failure { kind: FailureKind::Status(status.as_u16()), example: excerpt(&body) }),
            Err(error) => Err(Failure { kind: FailureKind::Broken, example: format!("{error:#}") }),
        }
    }
}

fn name(object: u32) -> String {
    format!("bench-watch-{object}")
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(MAX_ERROR).collect()
}
