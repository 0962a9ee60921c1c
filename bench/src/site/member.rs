//! A server for requests and watches: the endpoint of a virtual cluster, or the host. All of them share one HTTP/2
//! connection, as in client-go.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use ops::drain::Tasks;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::client::{self, Connection};
use crate::target::{Target, Version};

/// A server, and the connection to it.
pub(crate) struct Member {
    target: Target,
    tasks: Tasks,
    open: Mutex<Option<Connection<Full<Bytes>>>>,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// The time limit of a request whose response is read to its end.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of such a response, in bytes. The metrics of kube-apiserver have a few MB.
const MAX_RESPONSE: usize = 64 << 20;
/// The maximum number of characters of an error message.
const MAX_ERROR: usize = 300;

// === impl Member ===

impl Member {
    /// The current context of a kubeconfig with inline data.
    pub(crate) fn of_kubeconfig(file: &Path, tasks: &Tasks) -> anyhow::Result<Arc<Self>> {
        let target = Target::of_kubeconfig(file, Version::Http2)?;
        Ok(Arc::new(Self { target, tasks: tasks.clone(), open: Mutex::new(None) }))
    }

    /// Sends a request, and waits for the head of the response.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media: &'static str,
        body: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let uri = self.target.uri(path)?;
        let mut request = client::request(&self.target, method, uri, Full::new(Bytes::from(body)));
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        Ok(self.connection().await?.send(request).await?)
    }

    /// Sends a request, and reads the whole response.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        media: &'static str,
        body: String,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let exchange = async {
            let (head, body) = self.send(method, path, media, body).await?.into_parts();
            let body = Limited::new(body, MAX_RESPONSE).collect().await.map_err(anyhow::Error::from_boxed)?;
            Ok((head.status, body.to_bytes()))
        };
        timeout(REQUEST_TIMEOUT, exchange).await.with_context(|| format!("no response in time: {path}"))?
    }

    /// Like [`Member::call`], but fails unless the response is a success.
    pub(crate) async fn succeed(&self, method: Method, path: &str, body: String) -> anyhow::Result<Bytes> {
        let (status, body) = self.call(method.clone(), path, JSON, body).await?;
        ensure!(status.is_success(), "{method} {path}: {status}: {}", excerpt(&body));
        Ok(body)
    }

    /// Creates an object, unless it exists.
    pub(crate) async fn create(&self, path: &str, object: &serde_json::Value) -> anyhow::Result<()> {
        let (status, body) = self.call(Method::POST, path, JSON, object.to_string()).await?;
        ensure!(status.is_success() || status == StatusCode::CONFLICT, "POST {path}: {status}: {}", excerpt(&body));
        Ok(())
    }

    async fn connection(&self) -> anyhow::Result<Connection<Full<Bytes>>> {
        let mut open = self.open.lock().await;
        if let Some(shared) = open.as_ref().filter(|connection| connection.is_open()).and_then(Connection::share) {
            return Ok(shared);
        }
        let connection = Connection::open(&self.target, &self.tasks).await.context("cannot connect")?;
        let shared = connection.share().context("the connection cannot be shared")?;
        *open = Some(connection);
        Ok(shared)
    }
}

/// The beginning of a response, for an error message.
pub(crate) fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(MAX_ERROR).collect()
}
