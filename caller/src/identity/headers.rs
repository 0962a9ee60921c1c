//! The headers that say on whose behalf a request is: `k8s.io/api/authentication/v1/types.go`.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

pub(crate) const USER: HeaderName = HeaderName::from_static("impersonate-user");
pub(crate) const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
pub(crate) const UID: HeaderName = HeaderName::from_static("impersonate-uid");
/// Before the key of an extra field.
pub(crate) const EXTRA: &str = "impersonate-extra-";

/// Whatever begins so says who somebody is: impersonation, and the front proxy's headers
/// (`--requestheader-*-headers` of kube-apiserver). None may pass from a client to the host.
const OURS: [&str; 2] = ["impersonate-", "x-remote-"];

/// A name, group, uid or extra field that HTTP cannot carry unchanged: control characters, or white space at an end,
/// which a receiver cuts off (RFC 9110 section 5.5). With it cut off, the user would be somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name that cannot be written in HTTP headers")]
pub struct Inexpressible;

/// The headers that say to the host on whose behalf a request is.
///
/// Every group is written: groups in the request replace those that the host would imply.
pub(super) fn of(
    name: &str,
    groups: &[String],
    uid: Option<&str>,
    extra: &[(String, Vec<String>)],
) -> Result<Vec<(HeaderName, HeaderValue)>, Inexpressible> {
    let mut headers = vec![(USER, value(name)?)];
    for group in groups {
        headers.push((GROUP, value(group)?));
    }
    if let Some(uid) = uid {
        headers.push((UID, value(uid)?));
    }
    for (key, values) in extra {
        let name = header_name(key).ok_or(Inexpressible)?;
        for text in values {
            headers.push((name.clone(), value(text)?));
        }
    }
    Ok(headers)
}

/// Removes what a client says about who it is, and what its `Connection` names (RFC 9110 section 7.6.1) together with
/// that header: were it obeyed later, `Connection: Impersonate-User` would take out what is written here, and the
/// request would be the agent's own.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let ours = headers.keys().filter(|name| OURS.iter().any(|prefix| name.as_str().starts_with(prefix))).cloned();
    // `Upgrade` is always named, and is how an upgrade says to what.
    let gone: Vec<HeaderName> = named.chain(ours).filter(|name| *name != http::header::UPGRADE).collect();
    for name in gone.iter().chain(&[CONNECTION]) {
        headers.remove(name);
    }
}

/// Percent-encodes what is no header name's (RFC 9110 section 5.6.2), and `%`, like client-go's `headerKeyEscape`; and,
/// unlike it, capitals, which would come back small: API servers read names of headers in lower case.
fn header_name(key: &str) -> Option<HeaderName> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut name = Vec::with_capacity(EXTRA.len() + key.len());
    name.extend_from_slice(EXTRA.as_bytes());
    for &byte in key.as_bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&'*+-.^_`|~".contains(&byte) {
            name.push(byte);
        } else {
            name.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    HeaderName::from_bytes(&name).ok()
}

/// White space at an end would be cut off by the receiver (RFC 9110 section 5.5).
fn value(text: &str) -> Result<HeaderValue, Inexpressible> {
    let is_cut = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| Inexpressible)?;
    if is_cut { Err(Inexpressible) } else { Ok(value) }
}
