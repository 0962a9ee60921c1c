//! The input and the output of a page.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// The query of a request: `verbose&exclude=tunnel`. Nothing is percent-decoded, because the names that we look up do
/// not need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(String);

/// A small answer, held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResponse {
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
}

// === impl Query ===

impl Query {
    /// The part of a URL after `?`.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The values of `key`, in order. The value of a bare key (`verbose`) is empty.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .filter_map(move |(name, value)| (name == key).then_some(value))
    }

    /// Whether `key` is there, with or without a value.
    pub fn has(&self, key: &str) -> bool {
        self.values(key).next().is_some()
    }
}

// === impl PageResponse ===

impl PageResponse {
    /// Text for people, 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::new("text/plain; charset=utf-8", body)
    }

    /// JSON, 200.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::new("application/json", body)
    }

    /// Anything else, 200.
    pub fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, media_type, body: body.into() }
    }

    /// The same with another status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut res = Response::new(Full::new(self.body));
        *res.status_mut() = self.status;
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        // As in kube-apiserver: proxies must not cache the response, and browsers must not render it as a page.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        res
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_parsed() {
        let query = Query::new("verbose&exclude=a&exclude=b=c&=&x");
        assert!(query.has("verbose") && query.has("x") && query.has("exclude"));
        assert!(!query.has("verb") && !Query::default().has("verbose"));
        assert_eq!(query.values("exclude").collect::<Vec<_>>(), ["a", "b=c"]);
        assert_eq!(query.values("verbose").collect::<Vec<_>>(), [""]);
    }
}
