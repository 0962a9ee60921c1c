//! JSON calls to an API server: one object at a time, bounded in size and in time.
//!
//! [`Route`] is how a request reaches the API server: [`Tunnelled`] for a virtual cluster, [`Direct`] with a kubeconfig.

mod direct;
mod tunnelled;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt as _;
use kube_wire::Status;
use serde_json::Value;
use tokio::time::timeout;

use crate::registry::OpenError;
use crate::tunnel::TunnelError;

pub use direct::Direct;
pub use tunnelled::Tunnelled;

/// The time limit for a call, including its response.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a response, in bytes: a page of Clusters, each of which lists all its resources.
const MAX_RESPONSE: usize = 8 * 1024 * 1024;

/// The maximum length of an error that is not a Status, such as the page of a load balancer.
const MAX_MESSAGE: usize = 512;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("proxy-server/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Server-side apply; JSON is YAML.
const APPLY: HeaderValue = HeaderValue::from_static("application/apply-patch+yaml");

/// The field manager.
pub const FIELD_MANAGER: &str = "atoll-proxy-server";

/// How a request reaches an API server. The target is a path with its query.
pub trait Route: Send + Sync + 'static {
    /// Sends a request, and reads the whole response.
    fn exchange(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Bytes>, RouteError>> + Send;
}

impl<R: Route> Route for Arc<R> {
    fn exchange(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Bytes>, RouteError>> + Send {
        (**self).exchange(request)
    }
}

/// An API server.
#[derive(Clone, Debug)]
pub struct Api<R> {
    route: R,
}

/// There was no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The tunnel broke.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// No stream could be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[from] kubeconfig::OpenError),
    /// TCP or TLS failed.
    #[error("cannot connect to {address}")]
    Connect {
        /// The address.
        address: String,
        /// What failed.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response is too large.
    #[error("the response is larger than {MAX_RESPONSE} bytes")]
    TooLarge,
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// There was no response.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The API server refused it.
    #[error("{what}: refused with {code}: {message}")]
    Refused {
        /// Method and path.
        what: String,
        /// The HTTP status.
        code: StatusCode,
        /// The message of the API server.
        message: String,
    },
    /// The response is not valid.
    #[error("{what}: cannot parse the response")]
    Json {
        /// Method and path.
        what: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There was no response in time, so the call may have been executed.
    #[error("{what}: no response in time")]
    Silent {
        /// Method and path.
        what: String,
    },
}

// === impl Api ===

impl<R: Route> Api<R> {
    /// The API server that `route` reaches.
    pub fn new(route: R) -> Self {
        Self { route }
    }

    /// Reads an object. `None` if there is none.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.call(Method::GET, path, JSON, Bytes::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiError::Refused { code: StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads an object or a list that must exist.
    pub async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.call(Method::GET, path, JSON, Bytes::new()).await
    }

    /// Fails unless this health check passes.
    pub async fn check_health(&self, path: &str) -> Result<(), ApiError> {
        self.text(Method::GET, path, JSON, Bytes::new()).await.map(drop)
    }

    /// Creates an object.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let path = format!("{path}?fieldManager={FIELD_MANAGER}");
        self.call(Method::POST, &path, JSON, object.to_string().into()).await
    }

    /// Sets the fields of an object to these values, regardless of their owners. Does not change other fields.
    pub async fn apply(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
        self.call(Method::PATCH, &path, APPLY, object.to_string().into()).await
    }

    /// Deletes an object, if it still exists. `options` is a `DeleteOptions`.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<(), ApiError> {
        match self.text(Method::DELETE, path, JSON, options.to_string().into()).await {
            Ok(_) | Err(ApiError::Refused { code: StatusCode::NOT_FOUND, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn call(&self, method: Method, path: &str, kind: HeaderValue, body: Bytes) -> Result<Value, ApiError> {
        let what = format!("{method} {}", short(path));
        let response = self.text(method, path, kind, body).await?;
        serde_json::from_slice(&response).map_err(|source| ApiError::Json { what, source })
    }

    async fn text(&self, method: Method, path: &str, kind: HeaderValue, body: Bytes) -> Result<Bytes, ApiError> {
        let what = || format!("{method} {}", short(path));
        let mut request = Request::new(body);
        *request.uri_mut() = path.parse().expect("paths are made of names that were parsed");
        *request.method_mut() = method.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, JSON);
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(USER_AGENT, AGENT);
        let response = timeout(CALL_TIMEOUT, self.route.exchange(request)).await;
        let response = response.map_err(|_| ApiError::Silent { what: what() })??;
        let code = response.status();
        let body = response.into_body();
        if code.is_success() {
            Ok(body)
        } else {
            Err(ApiError::Refused { what: what(), code, message: message(&body) })
        }
    }
}

// === impl ApiError ===

impl ApiError {
    /// Whether the object exists already, or has changed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: StatusCode::CONFLICT, .. })
    }

    /// Whether no agent serves the cluster, so that a retry is the only remedy.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Route(RouteError::Tunnel(_) | RouteError::Open(_)) => true,
            // The agent is connected, but its host is unavailable.
            Self::Refused { code, .. } => *code == StatusCode::SERVICE_UNAVAILABLE,
            _ => false,
        }
    }
}

/// The whole body, up to the limit.
async fn collect<B>(body: B) -> Result<Bytes, RouteError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = body;
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| RouteError::Broken(error.into()))?.into_data() else { continue };
        if bytes.len() + data.len() > MAX_RESPONSE {
            return Err(RouteError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// The message of a response, for logs and events. It is cut, because an agent may send anything.
fn message(body: &[u8]) -> String {
    let message = Status::from_json(body).map(|status| status.message).unwrap_or_default();
    let message = if message.is_empty() { body } else { message.as_bytes() };
    String::from_utf8_lossy(&message[..message.len().min(MAX_MESSAGE)]).trim().to_owned()
}

/// The target without its query.
fn short(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}
