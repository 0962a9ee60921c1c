//! Removes headers that a client must not send to the agent, or that the client must not get from the agent.

use http::header::{self, HeaderMap, HeaderName};
use protocol::stream::PREFIX;

use super::refusal::Refusal;

/// Removes headers that must not reach the agent.
///
/// A `Connection` header may nominate other headers for removal. Only the common options are accepted: otherwise a
/// client could remove headers that a proxy before us has added, such as `Impersonate-User`.
pub(super) fn request(headers: &mut HeaderMap) -> Result<(), Refusal> {
    for value in headers.get_all(header::CONNECTION) {
        let value = value.to_str().map_err(|_| Refusal::BadConnectionHeader)?;
        let known = |option: &str| {
            let option = option.trim();
            ["", "close", "keep-alive", "upgrade", "te", "http2-settings"]
                .iter()
                .any(|known| option.eq_ignore_ascii_case(known))
        };
        if !value.split(',').all(known) {
            return Err(Refusal::BadConnectionHeader);
        }
    }
    // Our own headers, and those with which front proxies authenticate users to API servers (`X-Remote-*` by convention;
    // see `--requestheader-username-headers`).
    strip(headers, |name| name.starts_with(PREFIX) || name.starts_with("x-remote-"));
    Ok(())
}

/// Removes headers that must not reach the client.
pub(super) fn response(headers: &mut HeaderMap) {
    strip(headers, |name| name.starts_with(PREFIX));
}

/// Removes hop-by-hop headers, and others. One pass over all names is cheaper than a look-up of each header, because most
/// heads have none of them.
fn strip(headers: &mut HeaderMap, is_other: impl Fn(&str) -> bool) {
    let is_removed = |name: &&HeaderName| is_hop_by_hop(name) || is_other(name.as_str());
    let removed: Vec<HeaderName> = headers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Whether it is a header of a single connection (RFC 9110 section 7.6.1), or of its framing.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::PROXY_AUTHENTICATE
            | header::PROXY_AUTHORIZATION
            | header::TE
            | header::TRANSFER_ENCODING
            | header::UPGRADE
    ) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn identity_and_hop_by_hop_headers_are_removed() {
        let mut sent = headers(&[
            ("x-atoll-user", "root"),
            ("x-atoll-anything", "1"),
            ("x-remote-user", "root"),
            ("x-remote-extra-scopes", "all"),
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("authorization", "bearer t"),
            ("impersonate-user", "jane"),
        ]);
        request(&mut sent).unwrap();
        let mut left: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["authorization", "impersonate-user"]);
    }

    #[test]
    fn a_connection_header_cannot_nominate_other_headers() {
        for bad in ["impersonate-user", "close, authorization", "Upgrade,X-Atoll-User"] {
            let mut sent = headers(&[]);
            sent.append(header::CONNECTION, HeaderValue::from_static(bad));
            assert!(request(&mut sent).is_err(), "{bad}");
        }
    }
}
