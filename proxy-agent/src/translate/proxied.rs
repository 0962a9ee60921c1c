//! Responses of the server of a pod or a service, through the `proxy` subresource of an API server.
//!
//! The body passes unchanged, regardless of status and media type. The API server changes one header: it puts a
//! `Location` on the same server below the path of the request (`rewriteURL` in apimachinery's
//! `pkg/util/proxy/transport.go`), which is in host names.

use http::header::{HeaderMap, HeaderValue, LOCATION};

/// The path of a namespace, on the host and in the virtual cluster.
#[derive(Debug)]
pub(crate) struct Proxied {
    host: String,
    shown: String,
}

// === impl Proxied ===

impl Proxied {
    /// For a request in this namespace.
    pub(crate) fn new(host: &str, shown: &str) -> Self {
        let path = |namespace: &str| format!("/api/v1/namespaces/{namespace}/");
        Self { host: path(host), shown: path(shown) }
    }

    /// Maps the path in `Location`.
    pub(super) fn relocate(&self, headers: &mut HeaderMap) {
        let Some(rest) = headers.get(LOCATION).and_then(|value| value.to_str().ok()?.strip_prefix(&self.host)) else {
            return;
        };
        if let Ok(shown) = HeaderValue::try_from(format!("{}{rest}", self.shown)) {
            headers.insert(LOCATION, shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leads_to_where_its_client_is() {
        let proxied = Proxied::new("edge-ke", "edge");
        for (location, shown) in [
            (
                "/api/v1/namespaces/edge-ke/pods/web/proxy/login?next=/",
                "/api/v1/namespaces/edge/pods/web/proxy/login?next=/",
            ),
            ("/api/v1/namespaces/edge-ke-2/pods/web/proxy/", "/api/v1/namespaces/edge-ke-2/pods/web/proxy/"),
            ("https://example.com/api/v1/namespaces/edge-ke/", "https://example.com/api/v1/namespaces/edge-ke/"),
            ("login", "login"),
        ] {
            let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
            proxied.relocate(&mut headers);
            assert_eq!(headers[LOCATION], shown);
        }
    }
}
