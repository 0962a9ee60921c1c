//! What the phase `decide` has found in a request, for the response.

use http::{HeaderValue, Response, header};
use rewrite::VirtualNamespace;
use rewrite::request::Report;

/// What a decision has found. A refusal needs it, too: of the host, or of the agent.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Namespaces that the body names. They need not exist, and a refusal may name them.
    named: Vec<VirtualNamespace>,
    /// Warnings for the client.
    warnings: Vec<HeaderValue>,
}

// === impl Findings ===

impl Findings {
    /// The namespaces that the body names.
    pub(super) fn named(&self) -> impl Iterator<Item = VirtualNamespace> {
        self.named.iter().cloned()
    }

    /// Stores the namespaces that a body names, because the response may name them, too.
    pub(super) fn note(&mut self, report: &Report) {
        if !report.namespaces.is_empty() {
            self.named.clone_from(&report.namespaces);
        }
    }

    /// Stores these warnings, and no others.
    pub(super) fn warn(&mut self, texts: impl Iterator<Item = String>) {
        self.warnings = texts.filter_map(|text| warning(&text)).collect();
    }

    /// Adds a warning.
    pub(super) fn warn_also(&mut self, text: &str) {
        self.warnings.extend(warning(text));
    }

    /// Adds the warnings of a response that the client does not get.
    pub(super) fn warn_like<B>(&mut self, response: &Response<B>) {
        self.warnings.extend(response.headers().get_all(header::WARNING).iter().cloned());
    }

    /// The response with the warnings, each once (`AddWarning` in apiserver's `filters/warning.go`).
    pub(super) fn warned<B>(&self, mut response: Response<B>) -> Response<B> {
        for warning in &self.warnings {
            if !response.headers().get_all(header::WARNING).iter().any(|known| known == warning) {
                response.headers_mut().append(header::WARNING, warning.clone());
            }
        }
        response
    }
}

/// The value of a `Warning` header (RFC 7234, section 5.5), as `NewWarningHeader` in apimachinery's `util/net/http.go`
/// writes it; `None` if a header cannot carry the text.
pub(super) fn warning(text: &str) -> Option<HeaderValue> {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::try_from(format!("299 - \"{escaped}\"")).ok()
}
