//! The pages of one listener.

use std::fmt::{self, Write as _};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;

use super::check::Checks;
use super::page_response::{Form, PageResponse, Query};
use crate::html;
use crate::metrics::{self, Registry};
use crate::report::Report;

type Reply = dyn Fn(Query, Form) -> Pin<Box<dyn Future<Output = PageResponse> + Send>> + Send + Sync;

/// Pages by their exact path, and `/`, which lists them. Clones share the list.
#[derive(Clone)]
pub struct Pages {
    title: &'static str,
    list: Vec<Page>,
}

#[derive(Clone)]
struct Page {
    path: String,
    /// The text in the index. A page without it is not listed.
    about: Option<&'static str>,
    reply: Arc<Reply>,
}

// === impl Pages ===

impl Pages {
    /// No pages except the index, which begins with `title`.
    pub fn new(title: &'static str) -> Self {
        Self { title, list: Vec::new() }
    }

    /// Adds `/livez` and `/readyz`, and a page below them for each check.
    #[must_use]
    pub fn with_probes(self, livez: &Checks, readyz: &Checks) -> Self {
        self.with_probe("livez", "whether this process should be restarted (503: yes); ?verbose, ?exclude=CHECK", livez)
            .with_probe("readyz", "whether requests can be served (503: no); ?verbose, ?exclude=CHECK", readyz)
    }

    /// Adds `/metrics`.
    #[must_use]
    pub fn with_metrics(self, registry: &Registry) -> Self {
        let registry = registry.clone();
        self.with("/metrics", "metrics for Prometheus", move |_| {
            let answer = PageResponse::new(metrics::MEDIA_TYPE, registry.encode());
            std::future::ready(answer)
        })
    }

    /// Adds a page, such as `/debug/tunnels`. If a path has several pages, the first one answers.
    #[must_use]
    pub fn with<F, A>(self, path: &'static str, about: &'static str, reply: F) -> Self
    where
        F: Fn(Query) -> A + Send + Sync + 'static,
        A: Future<Output = PageResponse> + Send + 'static,
    {
        self.push(path.to_owned(), Some(about), move |query, _| reply(query))
    }

    /// Adds a page for people: HTML for browsers, and text for all others. The text has all columns with `?wide`, and the
    /// HTML always.
    #[must_use]
    pub fn with_report<F>(self, path: &'static str, about: &'static str, report: F) -> Self
    where
        F: Fn(bool) -> Report + Send + Sync + 'static,
    {
        let title = self.title;
        self.push(path.to_owned(), Some(about), move |query, form| {
            let body = match form {
                Form::Text => report(query.has("wide")).to_string(),
                Form::Html => html::report(title, &report(true)),
            };
            std::future::ready(PageResponse::in_form(form, body))
        })
    }

    /// Answers one request.
    pub(super) async fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let form = Form::of(headers);
        if method != Method::GET && method != Method::HEAD {
            let refusal = PageResponse::text("only GET and HEAD are supported\n");
            let mut res = refusal.with_status(StatusCode::METHOD_NOT_ALLOWED).into_response();
            let allow = HeaderValue::from_static("GET, HEAD");
            res.headers_mut().insert(ALLOW, allow);
            return res;
        }
        let answer = if uri.path() == "/" {
            self.index(form)
        } else {
            match self.list.iter().find(|page| page.path == uri.path()) {
                Some(page) => (page.reply)(Query::new(uri.query().unwrap_or("")), form).await,
                None => PageResponse::text("not found; / lists all pages\n").with_status(StatusCode::NOT_FOUND),
            }
        };
        answer.into_response()
    }

    fn index(&self, form: Form) -> PageResponse {
        let listed = || self.list.iter().filter_map(|page| Some((page.path.as_str(), page.about?)));
        if form == Form::Html {
            return PageResponse::in_form(form, html::index(self.title, listed()));
        }
        let width = listed().map(|(path, _)| path.len()).max().unwrap_or(0);
        let mut text = format!("{}\n\n", self.title);
        for (path, about) in listed() {
            writeln!(text, "{path:width$}  {about}").expect("writing to a String cannot fail");
        }
        PageResponse::in_form(form, text)
    }

    fn with_probe(mut self, probe: &'static str, about: &'static str, checks: &Checks) -> Self {
        let all = std::iter::once((format!("/{probe}"), Some(about), checks.clone()));
        let each = checks.each().map(|(name, check)| (format!("/{probe}/{name}"), None, check));
        for (path, about, checks) in all.chain(each) {
            self = self.push(path, about, move |query, _| {
                let checks = checks.clone();
                async move { checks.answer(probe, &query).await }
            });
        }
        self
    }

    fn push<F, A>(mut self, path: String, about: Option<&'static str>, reply: F) -> Self
    where
        F: Fn(Query, Form) -> A + Send + Sync + 'static,
        A: Future<Output = PageResponse> + Send + 'static,
    {
        let reply = Arc::new(move |query, form| -> Pin<Box<dyn Future<Output = PageResponse> + Send>> {
            Box::pin(reply(query, form))
        });
        self.list.push(Page { path, about, reply });
        self
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.list.iter().map(|page| &page.path);
        f.debug_list().entries(paths).finish()
    }
}
