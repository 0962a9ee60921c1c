//! Forwards requests to the host cluster on one HTTP/2 connection, with the credential of a kubeconfig: clients send
//! its token, or the connection uses its certificate.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Request, Response, Version, header};
use hyper::body::Incoming;
use ops::drain::Tasks;
use serde_json::json;
use tokio::sync::Mutex;

use crate::client::Connection;
use crate::target::{self, Target};

/// A host cluster.
pub(super) struct HostCluster {
    target: Target,
    /// The token of the kubeconfig.
    token: Option<String>,
    tasks: Tasks,
    open: Mutex<Option<Connection<Incoming>>>,
}

/// The size of a placeholder token before base64. Tokens of service accounts have about 900 characters, and agents send
/// theirs with each request.
const TOKEN_BYTES: usize = 675;

// === impl HostCluster ===

impl HostCluster {
    pub(super) fn open(kubeconfig: &Path, tasks: Tasks) -> anyhow::Result<Self> {
        let target = Target::of_kubeconfig(kubeconfig, target::Version::Http2)?;
        let bearer = target.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = bearer.and_then(|bearer| bearer.strip_prefix("Bearer ")).map(str::to_owned);
        Ok(Self { target, token, tasks, open: Mutex::default() })
    }

    /// Forwards a request with its token, or as the user of the certificate.
    pub(super) async fn forward(&self, mut request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = self.target.uri(path)?;
        *request.version_mut() = Version::HTTP_2;
        for name in [header::HOST, header::CONNECTION] {
            request.headers_mut().remove(name);
        }
        if self.token.is_none() {
            request.headers_mut().remove(header::AUTHORIZATION);
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
        open.as_ref().and_then(Connection::share).context("the connection cannot be shared")
    }

    /// A kubeconfig for this upstream with the token of the host, or with a placeholder. It is JSON, which is valid
    /// YAML.
    pub(super) fn kubeconfig(&self, url: &str, authority: &str) -> String {
        let placeholder = || URL_SAFE_NO_PAD.encode((0..=u8::MAX).cycle().take(TOKEN_BYTES).collect::<Vec<u8>>());
        let token = self.token.clone().unwrap_or_else(placeholder);
        let cluster = json!({"server": url, "certificate-authority-data": STANDARD.encode(authority)});
        let name = "upstream";
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        kubeconfig.to_string()
    }
}
