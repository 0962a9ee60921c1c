//! The identity of a verified client certificate, as the proxy-server sends it to the agent.
//!
//! Bearer tokens are not here: they stay in `Authorization`, and the host verifies them for the agent (TokenReview).
//! Kubernetes allows any text in user and group names, so header values are percent-encoded (RFC 3986).

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The user's name.
pub const USER: HeaderName = HeaderName::from_static("x-atoll-user");
/// All groups, separated by commas. They are in one value, because `h2` indexes only the first of several values of a name,
/// and encodes the others anew in each request (RFC 7541 section 6.2).
pub const GROUPS: HeaderName = HeaderName::from_static("x-atoll-groups");
/// The uid of the user, if the certificate has one.
pub const UID: HeaderName = HeaderName::from_static("x-atoll-uid");

/// The credential that proved the identity.
pub const CREDENTIAL: HeaderName = HeaderName::from_static("x-atoll-credential");

/// The identity that a client certificate proved, with names of the virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The common name.
    pub user: String,
    /// The organizations, in the order of the certificate.
    pub groups: Vec<String>,
    /// Kubernetes reads it from OID 1.3.6.1.4.1.57683.2 (KEP-5086). Empty means none.
    pub uid: Option<String>,
    /// Distinguishes the certificates of a user: `X509SHA256=` and the digest of the DER in hexadecimal,
    /// the value of `authentication.kubernetes.io/credential-id` (KEP-4193).
    pub credential: Option<String>,
}

/// The headers of an [`Identity`] as they came, to recognise the next request of the same client without decoding them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityHeaders {
    user: HeaderValue,
    groups: Option<HeaderValue>,
    uid: Option<HeaderValue>,
    credential: Option<HeaderValue>,
}

/// The headers are not those of a proxy-server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed identity headers on the tunnel")]
pub struct MalformedIdentity;

// === impl Identity ===

impl Identity {
    /// Writes the headers. Replaces existing ones.
    pub fn write(&self, headers: &mut HeaderMap) {
        Self::strip(headers);
        headers.extend(self.headers());
    }

    /// The headers, for headers that have none of an identity.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let Self { user, groups, uid, credential } = self;
        let user = [(USER, encode(user))].into_iter();
        let groups = (!groups.is_empty()).then(|| (GROUPS, encode_list(groups)));
        let uid = uid.iter().map(|uid| (UID, encode(uid)));
        user.chain(groups)
            .chain(uid)
            .chain(credential.iter().map(|credential| (CREDENTIAL, encode(credential))))
            .collect()
    }

    /// Removes the identity from the headers and returns it. `None` if the client has no certificate.
    pub fn take(headers: &mut HeaderMap) -> Result<Option<Self>, MalformedIdentity> {
        IdentityHeaders::take(headers)?.as_ref().map(IdentityHeaders::decode).transpose()
    }

    fn strip(headers: &mut HeaderMap) {
        for name in [USER, GROUPS, UID, CREDENTIAL] {
            headers.remove(name);
        }
    }
}

// === impl IdentityHeaders ===

impl IdentityHeaders {
    /// Removes the headers of the identity and returns them. `None` if the client has no certificate.
    pub fn take(headers: &mut HeaderMap) -> Result<Option<Self>, MalformedIdentity> {
        let [user, groups, uid, credential] = [USER, GROUPS, UID, CREDENTIAL].map(|name| headers.remove(name));
        match user {
            Some(user) => Ok(Some(Self { user, groups, uid, credential })),
            None if groups.is_none() && uid.is_none() && credential.is_none() => Ok(None),
            None => Err(MalformedIdentity),
        }
    }

    /// The identity.
    pub fn decode(&self) -> Result<Identity, MalformedIdentity> {
        Ok(Identity {
            user: decode(&self.user)?,
            groups: self.groups.as_ref().map(decode_list).transpose()?.unwrap_or_default(),
            uid: self.uid.as_ref().map(decode).transpose()?,
            credential: self.credential.as_ref().map(decode).transpose()?,
        })
    }

    /// Whether the user has no name.
    pub fn has_no_name(&self) -> bool {
        self.user.is_empty()
    }

    /// The lengths of all names, as they are encoded.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        let groups =
            self.groups.iter().flat_map(|groups| groups.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::len);
        groups.chain(self.uid.iter().chain(&self.credential).chain([&self.user]).map(HeaderValue::len))
    }
}

/// Adds the user of the request to a response, for the proxy-server's log.
pub fn name_caller(headers: &mut HeaderMap, user: &str) {
    headers.insert(USER, encode(user));
}

/// The user that [`name_caller`] has added.
pub fn caller(headers: &HeaderMap) -> Option<String> {
    decode(headers.get(USER)?).ok()
}

pub(crate) fn encode(text: &str) -> HeaderValue {
    let mut out = Vec::with_capacity(text.len());
    encode_into(&mut out, text);
    value(&out)
}

fn encode_list(texts: &[String]) -> HeaderValue {
    let mut out = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode_into(&mut out, text);
    }
    value(&out)
}

/// Appends the text. A comma is escaped, because it separates the elements of a list.
fn encode_into(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'%' | b',') {
            out.push(byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

fn value(encoded: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(encoded).expect("only visible ASCII is written")
}

pub(crate) fn decode(value: &HeaderValue) -> Result<String, MalformedIdentity> {
    decode_bytes(value.as_bytes())
}

fn decode_list(value: &HeaderValue) -> Result<Vec<String>, MalformedIdentity> {
    value.as_bytes().split(|byte| *byte == b',').map(decode_bytes).collect()
}

fn decode_bytes(encoded: &[u8]) -> Result<String, MalformedIdentity> {
    let mut bytes = encoded.iter();
    let mut out = Vec::with_capacity(encoded.len());
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = char::from(*bytes.next().ok_or(MalformedIdentity)?);
            digit.to_digit(16).ok_or(MalformedIdentity)
        };
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high * 16 + low).expect("two hex digits make a byte"));
    }
    String::from_utf8(out).map_err(|_| MalformedIdentity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_identity_survives_the_headers(
            user in ".{0,40}",
            groups in proptest::collection::vec(".{0,40}|[a-z,%]{0,3}", 0..5),
            uid in proptest::option::of(".{1,40}"),
            credential in proptest::option::of("X509SHA256=[0-9a-f]{64}"),
        ) {
            let identity = Identity { user, groups, uid, credential };
            let mut headers = HeaderMap::new();
            headers.append(GROUPS, HeaderValue::from_static("smuggled"));
            identity.write(&mut headers);
            prop_assert_eq!(Identity::take(&mut headers), Ok(Some(identity)));
            prop_assert!(headers.is_empty());
        }
    }

    #[test]
    fn the_caller_is_named_in_the_response() {
        let mut headers = HeaderMap::new();
        assert_eq!(caller(&headers), None);
        name_caller(&mut headers, "söme 100%\nuser");
        assert_eq!(caller(&headers).as_deref(), Some("söme 100%\nuser"));
    }

    #[test]
    fn a_comma_in_a_name_does_not_make_two_groups() {
        let groups = vec!["a,system:masters".to_owned(), String::new()];
        let identity = Identity { user: "jane".to_owned(), groups, uid: None, credential: None };
        let mut headers = HeaderMap::new();
        identity.write(&mut headers);
        assert_eq!(headers[GROUPS], "a%2Csystem:masters,");
        assert_eq!(Identity::take(&mut headers), Ok(Some(identity)));
    }

    #[test]
    fn groups_without_a_user_are_malformed() {
        let mut headers = HeaderMap::new();
        headers.insert(GROUPS, HeaderValue::from_static("system:masters"));
        assert_eq!(Identity::take(&mut headers), Err(MalformedIdentity));
    }

    #[test]
    fn broken_escapes_are_malformed() {
        for bad in ["%", "%2", "%zz", "%ff"] {
            let mut headers = HeaderMap::new();
            headers.insert(USER, HeaderValue::from_static(bad));
            assert_eq!(Identity::take(&mut headers), Err(MalformedIdentity), "{bad}");
        }
    }
}
