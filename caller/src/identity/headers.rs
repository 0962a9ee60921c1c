//! The headers that say on whose behalf a request is: `k8s.io/api/authentication/v1/types.go`.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use super::HostUser;

pub(crate) const USER: HeaderName = HeaderName::from_static("impersonate-user");
pub(crate) const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
pub(crate) const UID: HeaderName = HeaderName::from_static("impersonate-uid");
/// Before the key of an extra field.
pub(crate) const EXTRA: &str = "impersonate-extra-";

/// Whatever begins so says who somebody is: impersonation, and the front proxy's headers
/// (`--requestheader-*-headers` of kube-apiserver). None may pass from a client to the host.
const OURS: [&str; 2] = ["impersonate-", "x-remote-"];

// === impl HostUser ===

impl HostUser {
    /// Makes a request one of this user's: removes every header of a client that says who somebody is, then sets ours,
    /// as client-go does (`transport/round_trippers.go`).
    ///
    /// Every group is written: groups in the request replace those that the host would imply.
    pub fn write(&self, headers: &mut HeaderMap) {
        strip(headers);
        headers.insert(USER, value(self.name()));
        for group in self.groups() {
            headers.append(GROUP, value(group));
        }
        if let Some(uid) = self.uid() {
            headers.insert(UID, value(uid));
        }
        for (key, values) in self.extra() {
            let name = header_name(key).expect("the key was checked when the user was made");
            for text in values {
                headers.append(name.clone(), value(text));
            }
        }
    }
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

/// Whether a key of an extra field can be in a header's name.
pub(crate) fn is_key(key: &str) -> bool {
    header_name(key).is_some()
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

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes()).expect("the text was checked when the user was made")
}
