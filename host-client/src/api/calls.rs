//! One function for each kind of call.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use kube_wire::query::Query;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::time::timeout;

use super::error::ApiError;
use super::patch_kind::PatchKind;
use super::position::Position;
use super::response::{self, Page};
use super::selection::{Selection, Shape};
use crate::{Host, HostBody, RequestBody, empty, full};

/// The timeout of one call, including its response. The API server itself ends a request after 60 s
/// (`--request-timeout`), unless it hangs.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(65);

/// The maximum size of a response, in bytes. An object is smaller: etcd accepts at most 1.5 MiB
/// (`--max-request-bytes`).
pub(super) const MAX_RESPONSE: usize = 32 * 1024 * 1024;

/// The maximum size of a page, in bytes: [`PAGE`](super::position::PAGE) objects of 8 KB each. Several may be read at once.
pub(super) const MAX_PAGE: usize = 4 * 1024 * 1024;

/// The media type of objects, and of the options of a deletion.
const JSON: &str = "application/json";

/// Calls with the agent's own credentials, and under its own name.
#[derive(Clone, Debug)]
pub struct Api {
    host: Host,
    user_agent: HeaderValue,
}

// === impl Api ===

impl Api {
    /// Calls through this host. In the API server's audit log, their user agent is `proxy-agent/VERSION`.
    pub fn new(host: Host) -> Self {
        const NAME: &str = concat!("proxy-agent/", env!("CARGO_PKG_VERSION"));
        Self { host, user_agent: HeaderValue::from_static(NAME) }
    }

    /// Reads one object. Here and below, `path` is absolute, and may have a query.
    pub async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.read(path).await
    }

    /// Reads the part of one object that a `T` has.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.call(self.request(Method::GET, path)?, empty()).await
    }

    /// Reads a whole list, for short-lived commands. The agent does not use it, because clients determine the length of
    /// lists.
    pub async fn list(&self, path: &str, selection: &Selection) -> Result<Vec<Value>, ApiError> {
        let mut items = Vec::new();
        let mut from = Position::default();
        loop {
            let page = self.page(path, selection, &from).await?;
            items.extend(page.items);
            match page.next {
                Some(next) => from = next,
                None => return Ok(items),
            }
        }
    }

    /// Creates an object, and returns it as stored.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let request = self.request_with(Method::POST, path, JSON, Shape::Whole)?;
        self.call(request, full(object.to_string())).await
    }

    /// Replaces an object. If it has a `resourceVersion`, this fails after a concurrent change.
    pub async fn update(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let request = self.request_with(Method::PUT, path, JSON, Shape::Whole)?;
        self.call(request, full(object.to_string())).await
    }

    /// Patches an object.
    pub async fn patch(&self, path: &str, kind: PatchKind, patch: &Value) -> Result<Value, ApiError> {
        let request = self.request_with(Method::PATCH, path, kind.content_type(), Shape::Whole)?;
        self.call(request, full(patch.to_string())).await
    }

    /// Creates an object from JSON text.
    pub async fn create_text(&self, path: &str, object: String) -> Result<(), ApiError> {
        let request = self.request_with(Method::POST, path, JSON, Shape::Metadata)?;
        let _: IgnoredAny = self.call(request, full(object)).await?;
        Ok(())
    }

    /// Patches an object with a patch in JSON text.
    pub async fn patch_text(&self, path: &str, kind: PatchKind, patch: String) -> Result<(), ApiError> {
        let request = self.request_with(Method::PATCH, path, kind.content_type(), Shape::Metadata)?;
        let _: IgnoredAny = self.call(request, full(patch)).await?;
        Ok(())
    }

    /// Deletes an object. `options` is a `DeleteOptions` without `kind` and `apiVersion`: `{}`, or preconditions.
    /// Returns the metadata in the response as a `T`: that of the object if it still exists, or that of a successful
    /// Status.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str, options: &Value) -> Result<T, ApiError> {
        let request = self.request_with(Method::DELETE, path, JSON, Shape::Metadata)?;
        self.call(request, full(options.to_string())).await
    }

    /// Reads a page with as many objects as `MAX_PAGE` allows, and at least one.
    pub async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        selection: &Selection,
        from: &Position,
    ) -> Result<Page<T>, ApiError> {
        let mut limit = from.limit;
        let bytes = loop {
            let mut query = selection.query(path);
            query.set("limit", &limit.to_string());
            if let Some(token) = &from.token {
                query.set("continue", token);
            }
            if let Some(version) = &from.exact {
                query.set("resourceVersion", version);
                query.set("resourceVersionMatch", "Exact");
            }
            let mut request = self.request(Method::GET, &with_query(path, &query))?;
            request.headers_mut().insert(ACCEPT, selection.shape.of_list());
            let largest = if limit == 1 { MAX_RESPONSE } else { MAX_PAGE };
            match self.bytes(request, empty(), largest).await {
                Err(ApiError::TooLarge { .. }) if limit > 1 => limit = (limit / 4).max(1),
                answered => break answered?,
            }
        };
        Page::read(&bytes, limit)
    }

    /// The version of the newest state of a collection. The API server does not read it from a cache. If nothing meets the
    /// field selector, this costs the API server the least.
    pub async fn newest_version(&self, path: &str, fields: &str) -> Result<String, ApiError> {
        let selection = Selection { shape: Shape::Metadata, fields: fields.to_owned(), ..Selection::default() };
        Ok(self.page::<IgnoredAny>(path, &selection, &Position::one()).await?.resource_version)
    }

    /// Begins a watch, whose body the caller reads. The timeout applies only to the head of the response.
    pub(super) async fn watch(
        &self,
        path: &str,
        selection: &Selection,
        resource_version: &str,
        seconds: u32,
    ) -> Result<HostBody, ApiError> {
        let mut query = selection.query(path);
        query.set("watch", "true");
        query.set("allowWatchBookmarks", "true");
        query.set("resourceVersion", resource_version);
        query.set("timeoutSeconds", &seconds.to_string());
        let mut request = self.request(Method::GET, &with_query(path, &query))?;
        request.headers_mut().insert(ACCEPT, selection.shape.of_object());
        let response = self.send(request, empty());
        let response = timeout(CALL_TIMEOUT, response).await.map_err(|_| ApiError::TimedOut)??;
        Ok(response.into_body())
    }

    async fn call<T: DeserializeOwned>(&self, request: Request<()>, body: RequestBody) -> Result<T, ApiError> {
        let bytes = self.bytes(request, body, MAX_RESPONSE).await?;
        serde_json::from_slice(&bytes).map_err(ApiError::Json)
    }

    async fn bytes(&self, request: Request<()>, body: RequestBody, largest: usize) -> Result<Bytes, ApiError> {
        let answered = async {
            let response = self.send(request, body).await?;
            response::read(response.into_body(), largest).await
        };
        timeout(CALL_TIMEOUT, answered).await.map_err(|_| ApiError::TimedOut)?
    }

    /// Returns a successful response, or the Status of a refusal as an error.
    async fn send(&self, request: Request<()>, body: RequestBody) -> Result<Response<HostBody>, ApiError> {
        let response = self.host.send(request.map(|()| body)).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(response::refusal(response).await)
    }

    fn request(&self, method: Method, path: &str) -> Result<Request<()>, ApiError> {
        let uri: Uri = path.parse().map_err(|_| ApiError::Path(path.to_owned()))?;
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(JSON));
        request.headers_mut().insert(USER_AGENT, self.user_agent.clone());
        Ok(request)
    }

    /// A request with a body. Only the metadata is requested of a response that nobody reads, because an object may be
    /// large.
    fn request_with(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        shape: Shape,
    ) -> Result<Request<()>, ApiError> {
        let mut request = self.request(method, path)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        request.headers_mut().insert(ACCEPT, shape.of_object());
        Ok(request)
    }
}

fn with_query(path: &str, query: &Query<'_>) -> String {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    format!("{path}?{}", query.as_str())
}
