//! Documents that the proxy-server may send to a client without asking the agent again.
//!
//! ```text
//! GET /readyz                            :status: 200
//! x-atoll-prefetch: 9f86d0... /version   x-atoll-unchanged: 0
//! ```
//!
//! Clients such as Karmada check the health of a cluster every few seconds, and then read the same documents. With a health
//! check, the proxy-server names the responses that it has for these documents. For each of them, the agent authenticates and
//! authorises the client, and produces the response. It then reports which responses are unchanged. So the next three requests do
//! not cross the slow network.
//!
//! The decision is valid only for the client of the health check, and only for [`LIFETIME`]. The proxy-server must use this
//! decision only for a request whose head equals that of the health check, apart from the target and `accept`.

use std::time::Duration;

use http::header::{ACCEPT, DATE, HeaderMap};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method};

use crate::audit_id::AUDIT_ID;
use crate::digest::{Digest, Hasher};
use crate::identity::{USER, decode, encode};
use crate::stream::PREFIX;

/// The responses that the proxy-server has: each with its digest, its target, and the `accept` of its request. Only the
/// proxy-server sets it, never a client.
pub const PREFETCH: HeaderName = HeaderName::from_static("x-atoll-prefetch");
/// The positions of the unchanged responses in [`PREFETCH`]. Only the agent sets it, never a host.
pub const UNCHANGED: HeaderName = HeaderName::from_static("x-atoll-unchanged");

/// The time for which the decision of the agent is valid. It is much shorter than the time for which the agent caches a review (5
/// s).
pub const LIFETIME: Duration = Duration::from_secs(1);
/// The maximum number of responses that a request names. Each position must be one digit.
pub const MAX_DOCUMENTS: usize = 4;
/// The maximum length of the target, and of `accept`.
pub const MAX_LENGTH: usize = 256;

/// A response that the proxy-server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// That of the request.
    pub target: PathAndQuery,
    /// That of the request.
    pub accept: Option<HeaderValue>,
    /// The digest of the response ([`digest`]).
    pub digest: Digest,
}

/// Whether requests for documents may follow this one.
pub fn is_health_check(method: &Method, path: &str) -> bool {
    method == Method::GET && matches!(path, "/readyz" | "/healthz" | "/livez")
}

/// Whether this is the path of a document that may be prefetched. The agent produces these documents quickly, and a request for
/// them has no body.
pub fn is_prefetchable(path: &str) -> bool {
    matches!(path, "/version" | "/api" | "/apis")
}

/// The digest of a response: of its head, apart from what differs each time, and of its body.
pub fn digest(head: &HeaderMap, body: &Digest) -> Digest {
    let is_stable =
        |name: &HeaderName| *name != DATE && *name != AUDIT_ID && (*name == USER || !name.as_str().starts_with(PREFIX));
    let mut fields: Vec<_> = head.iter().filter(|(name, _)| is_stable(name)).collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    let mut hasher = Hasher::default();
    for (name, value) in fields {
        // Neither a name nor a value contains these bytes (RFC 9110, section 5.5).
        for part in [name.as_str().as_bytes(), b"\0", value.as_bytes(), b"\n"] {
            hasher.update(part);
        }
    }
    hasher.update(body.as_bytes());
    hasher.finish()
}

/// Names the responses in the head of a health check.
pub fn write(prefetches: &[Prefetch], request: &mut HeaderMap) {
    let texts: Vec<String> = prefetches.iter().map(ToString::to_string).collect();
    let value = HeaderValue::try_from(texts.join(",")).expect("only visible ASCII and spaces are written");
    request.insert(PREFETCH, value);
}

/// Removes [`PREFETCH`] from the head of a request, and returns its responses. If one of them is invalid, the result is empty.
pub fn take(request: &mut HeaderMap) -> Vec<Prefetch> {
    let read = |value: HeaderValue| {
        let texts: Vec<&str> = value.to_str().ok()?.split(',').collect();
        if texts.len() > MAX_DOCUMENTS {
            return None;
        }
        texts.into_iter().map(Prefetch::parse).collect::<Option<Vec<_>>>()
    };
    request.remove(PREFETCH).and_then(read).unwrap_or_default()
}

/// Adds the positions of the responses that are the same to the head of the response.
pub fn write_unchanged(positions: &[usize], response: &mut HeaderMap) {
    let text: String = positions.iter().map(ToString::to_string).collect();
    response.insert(UNCHANGED, HeaderValue::try_from(text).expect("digits are a header value"));
}

/// The positions of the responses that are the same.
pub fn unchanged(response: &HeaderMap) -> Vec<usize> {
    let digits = response.get(UNCHANGED).map(HeaderValue::as_bytes).unwrap_or_default();
    digits.iter().filter(|digit| digit.is_ascii_digit()).map(|digit| usize::from(digit - b'0')).collect()
}

// === impl Prefetch ===

impl Prefetch {
    /// Whether it may be named: the target is that of a document, and nothing is too long or not visible ASCII.
    pub fn is_valid(&self) -> bool {
        let is_text = |accept: &HeaderValue| accept.len() <= MAX_LENGTH && accept.to_str().is_ok();
        is_prefetchable(self.target.path())
            && self.target.as_str().len() <= MAX_LENGTH
            && self.accept.as_ref().is_none_or(is_text)
    }

    /// Makes the head of a request for this document from that of the health check.
    pub fn request(&self, health_check: &HeaderMap) -> HeaderMap {
        let mut headers = health_check.clone();
        headers.remove(ACCEPT);
        if let Some(accept) = &self.accept {
            headers.insert(ACCEPT, accept.clone());
        }
        headers
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ');
        let digest = Digest::parse(fields.next()?)?;
        let read = |field: &str| decode(&HeaderValue::try_from(field).ok()?).ok();
        let target = read(fields.next()?)?.parse().ok()?;
        let accept = match fields.next() {
            None => None,
            Some(field) => Some(HeaderValue::try_from(read(field)?).ok()?),
        };
        let this = Self { target, accept, digest };
        (fields.next().is_none() && this.is_valid()).then_some(this)
    }
}

impl std::fmt::Display for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let visible = |text: &[u8]| encode(&String::from_utf8_lossy(text));
        let target = visible(self.target.as_str().as_bytes());
        write!(f, "{} {}", self.digest, target.to_str().unwrap_or_default())?;
        if let Some(accept) = &self.accept {
            write!(f, " {}", visible(accept.as_bytes()).to_str().unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn prefetch(target: &str, accept: Option<&str>) -> Prefetch {
        let accept = accept.map(|accept| accept.parse().unwrap());
        Prefetch { target: target.parse().unwrap(), accept, digest: Digest::of(target.as_bytes()) }
    }

    proptest! {
        #[test]
        fn any_media_types_survive(accepts in proptest::collection::vec(proptest::option::of("[ -~]{0,60}"), 1..5)) {
            let named: Vec<_> = accepts.iter().map(|accept| prefetch("/apis?timeout=32s", accept.as_deref())).collect();
            let mut head = HeaderMap::new();
            write(&named, &mut head);
            prop_assert_eq!((take(&mut head), head.len()), (named, 0));
        }

        #[test]
        fn no_header_is_a_panic(value in proptest::collection::vec(32_u8..=255, 0..200)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut head = HeaderMap::from_iter([(PREFETCH, value.clone()), (UNCHANGED, value)]);
                let _ = (take(&mut head), unchanged(&head));
            }
        }
    }

    #[test]
    fn only_short_documents_are_valid() {
        let digest = Digest::of(b"");
        for bad in
            ["/api/v1/pods", "/openapi/v2", "/apis/apps/v1", "//version", &format!("/api?{}", "a".repeat(MAX_LENGTH))]
        {
            assert_eq!(Prefetch::parse(&format!("{digest} {bad}")), None, "{bad}");
        }
        let long = "a".repeat(MAX_LENGTH + 1);
        for bad in ["", "/api", &format!("{digest}"), &format!("{digest} /api {long}"), &format!("{digest} /api a b")] {
            assert_eq!(Prefetch::parse(bad), None, "{bad}");
        }
        let mut head = HeaderMap::new();
        write(&vec![prefetch("/api", None); MAX_DOCUMENTS + 1], &mut head);
        assert_eq!(take(&mut head), []);
    }

    #[test]
    fn the_positions_survive() {
        for positions in [&[][..], &[0], &[0, 2, 3]] {
            let mut head = headers(&[("x-atoll-unchanged", "1")]);
            write_unchanged(positions, &mut head);
            assert_eq!(unchanged(&head), positions);
        }
        assert_eq!(unchanged(&HeaderMap::new()), [0; 0]);
    }

    #[test]
    fn the_digest_is_that_of_what_the_client_sees() {
        let (body, stable) = (Digest::of(b"{}"), headers(&[("etag", "1"), ("vary", "a"), ("x-atoll-user", "jane")]));
        let with = |name: &'static str, value: &str| {
            let mut head = stable.clone();
            head.insert(name, value.parse().unwrap());
            digest(&head, &body)
        };
        let same = digest(&stable, &body);
        for (name, value) in [("date", "x"), ("audit-id", "x"), ("x-atoll-encoding", "held"), ("x-atoll-length", "2")] {
            assert_eq!(with(name, value), same, "{name}");
        }
        for (name, value) in [("etag", "2"), ("x-atoll-user", "tom"), ("cache-control", "private"), ("vary", "a\tb")] {
            assert_ne!(with(name, value), same, "{name}");
        }
        assert_ne!(digest(&stable, &Digest::of(b"[]")), same);
        let reordered = headers(&[("x-atoll-user", "jane"), ("vary", "a"), ("etag", "1")]);
        assert_eq!(digest(&reordered, &body), same);
    }

    #[test]
    fn the_request_differs_only_in_the_media_type() {
        let check = headers(&[("accept", "*/*"), ("authorization", "Bearer t"), ("x-atoll-cluster", "edge")]);
        let request = prefetch("/apis", Some("application/json")).request(&check);
        let wanted =
            headers(&[("authorization", "Bearer t"), ("x-atoll-cluster", "edge"), ("accept", "application/json")]);
        assert_eq!(request, wanted);
        assert!(!prefetch("/apis", None).request(&check).contains_key("accept"));
    }
}
