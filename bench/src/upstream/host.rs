//! The host cluster behind: what is not served from memory goes there as it came, over one HTTP/2 connection.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, Version, header};
use hyper::body::Incoming;
use ops::drain::Tasks;
use serde_json::json;
use tokio::sync::Mutex;

use crate::client::Connection;
use crate::target::{self, Target};

/// A real host cluster.
pub(super) struct HostCluster {
    target: Target,
    tasks: Tasks,
    open: Mutex<Option<Connection<Incoming>>>,
}

// === impl HostCluster ===

impl HostCluster {
    pub(super) fn open(kubeconfig: &Path, tasks: Tasks) -> anyhow::Result<Self> {
        let target = Target::of_kubeconfig(kubeconfig, target::Version::Http2)?;
        Ok(Self { target, tasks, open: Mutex::default() })
    }

    /// Sends a request with the credentials that it came with.
    pub(super) async fn forward(&self, mut request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = self.target.uri(path)?;
        *request.version_mut() = Version::HTTP_2;
        for name in [header::HOST, header::CONNECTION] {
            request.headers_mut().remove(name);
        }
        let mut response = self.connection().await?.send(request).await.context("the host cluster")?;
        *response.version_mut() = Version::default();
        Ok(response)
    }

    async fn connection(&self) -> anyhow::Result<Connection<Incoming>> {
        let mut open = self.open.lock().await;
        if open.as_ref().is_none_or(|open| !open.is_open()) {
            *open = Some(Connection::open(&self.target, &self.tasks).await.context("the host cluster")?);
        }
        open.as_ref().and_then(Connection::share).context("an HTTP/2 connection can be shared")
    }

    /// A kubeconfig that leads here with the credential for there. JSON is YAML.
    pub(super) fn kubeconfig(&self, url: &str, authority: &str) -> anyhow::Result<String> {
        let bearer = self.target.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = bearer.and_then(|bearer| bearer.strip_prefix("Bearer "));
        let token = token.context("--host: a certificate cannot be passed on; the user must have a token")?;
        let cluster = json!({"server": url, "certificate-authority-data": STANDARD.encode(authority)});
        let name = "upstream";
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        Ok(kubeconfig.to_string())
    }
}
