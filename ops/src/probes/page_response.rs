//! The input and the output of a page.

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use crate::html;

/// The query of a request: `verbose&exclude=tunnel`. Nothing is percent-decoded, because the names that we look up do
/// not need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(String);

/// The form of a page for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// For terminals.
    Text,
    /// For browsers.
    Html,
}

/// A small answer, held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResponse {
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
    /// Whether the page has more than one form, and which one this is.
    form: Option<Form>,
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

// === impl Form ===

impl Form {
    /// HTML for clients that ask for it by name, as browsers do. `*/*` is text, because curl sends it.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let is_html = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html"));
            // A weight of zero means "not this one".
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
            is_named && weight.is_none_or(|weight| weight > 0.0)
        };
        if accepted.flat_map(|value| value.split(',')).any(is_html) { Self::Html } else { Self::Text }
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

    /// A page that has both forms, in one of them, 200.
    pub(super) fn in_form(form: Form, body: String) -> Self {
        let response = match form {
            Form::Text => Self::text(body),
            Form::Html => Self::new("text/html; charset=utf-8", body),
        };
        Self { form: Some(form), ..response }
    }

    /// Anything else, 200.
    pub fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, media_type, body: body.into(), form: None }
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
        // As in kube-apiserver: proxies must not cache the response, and browsers must not take text for a page.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.form.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept"));
        }
        // Browsers render these pages alone. They quote peers, so a browser must run and load nothing.
        if self.form == Some(Form::Html) {
            let policy = HeaderValue::from_str(&html::CONTENT_SECURITY_POLICY).expect("the policy is visible ASCII");
            headers.insert(CONTENT_SECURITY_POLICY, policy);
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        res
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_for_clients_that_name_it() {
        let form = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            Form::of(&headers)
        };
        for accept in
            ["text/html", "application/xml, TEXT/HTML;level=1;q=0.2", "text/html,application/xhtml+xml,*/*;q=0.8"]
        {
            assert_eq!(form(accept), Form::Html, "{accept}");
        }
        for accept in ["*/*", "text/*", "text/plain", "text/html;q=0, text/plain", "application/json", ""] {
            assert_eq!(form(accept), Form::Text, "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new()), Form::Text);
    }

    #[test]
    fn queries_are_parsed() {
        let query = Query::new("verbose&exclude=a&exclude=b=c&=&x");
        assert!(query.has("verbose") && query.has("x") && query.has("exclude"));
        assert!(!query.has("verb") && !Query::default().has("verbose"));
        assert_eq!(query.values("exclude").collect::<Vec<_>>(), ["a", "b=c"]);
        assert_eq!(query.values("verbose").collect::<Vec<_>>(), [""]);
    }
}
