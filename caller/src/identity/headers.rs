//! The headers with the user of a request: `k8s.io/api/authentication/v1/types.go`.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

/// The header that names the user whom the agent impersonates (`authentication/v1` in `k8s.io/api`).
pub const USER: HeaderName = HeaderName::from_static("impersonate-user");
pub(crate) const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
pub(crate) const UID: HeaderName = HeaderName::from_static("impersonate-uid");
/// The prefix of headers with an extra field. Its key follows.
pub(crate) const EXTRA: &str = "impersonate-extra-";

/// The prefixes of headers with an identity: those of impersonation, and of the front proxy
/// (`--requestheader-*-headers` of kube-apiserver). None may pass from a client to the host.
const OURS: [&str; 2] = ["impersonate-", "x-remote-"];

/// A name, group, uid or extra field cannot be written in a header: it has control characters, or begins or ends with
/// white space, which the receiver would remove (RFC 9110 section 5.5). Without it, it would be another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name that cannot be written in HTTP headers")]
pub struct Inexpressible;

/// The headers with which the agent impersonates the user on the host.
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

/// Removes identity headers of the client, its `Connection` header, and the headers that `Connection` nominates (RFC
/// 9110 section 7.6.1). Otherwise, `Connection: Impersonate-User` could later remove the header that is set here, and
/// the request would be executed as the agent.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let ours = headers.keys().filter(|name| OURS.iter().any(|prefix| name.as_str().starts_with(prefix))).cloned();
    // `Connection` always nominates `Upgrade`, which has the protocol of an upgrade.
    let gone: Vec<HeaderName> = named.chain(ours).filter(|name| *name != http::header::UPGRADE).collect();
    for name in gone.iter().chain(&[CONNECTION]) {
        headers.remove(name);
    }
}

/// Percent-encodes characters that a header name cannot contain (RFC 9110 section 5.6.2), and `%`, like
/// `headerKeyEscape` in client-go. Unlike it, also encodes capitals, because API servers read header names in lower
/// case.
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

/// The receiver would remove white space at an end (RFC 9110 section 5.5).
fn value(text: &str) -> Result<HeaderValue, Inexpressible> {
    let is_cut = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| Inexpressible)?;
    if is_cut { Err(Inexpressible) } else { Ok(value) }
}
