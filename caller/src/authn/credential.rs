//! The credentials in the headers of a request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use ops::secret::Secret;
use protocol::identity::IdentityHeaders;

/// A browser cannot set `Authorization` on a WebSocket, so a token may be one of the sub-protocols
/// (`k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`).
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// All credentials, in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) certificate: Option<IdentityHeaders>,
    pub(super) tokens: Vec<Secret>,
    /// There is a credential that cannot be parsed.
    pub(super) any_invalid: bool,
}

/// A sub-protocol that is not a token, or a token as the only sub-protocol.
struct InvalidCredential;

// === impl Credentials ===

impl Credentials {
    /// Removes the credentials from the headers, including invalid ones.
    pub(super) fn take(headers: &mut HeaderMap) -> Self {
        let mut taken = Self { certificate: None, tokens: Vec::new(), any_invalid: false };
        match IdentityHeaders::take(headers) {
            // A certificate without a common name identifies no user (`x509.CommonNameUserConversion`).
            Ok(identity) => taken.certificate = identity.filter(|identity| !identity.has_no_name()),
            Err(_) => taken.any_invalid = true,
        }
        for found in [take_bearer(headers), take_protocol(headers)] {
            match found {
                Ok(token) => taken.tokens.extend(token.map(Secret::from)),
                Err(InvalidCredential) => taken.any_invalid = true,
            }
        }
        taken
    }
}

/// Parsed as in `bearertoken.go` of apiserver: the first header is used, the scheme is case-insensitive, and the token
/// ends at a space. Other schemes are ignored.
fn take_bearer(headers: &mut HeaderMap) -> Result<Option<String>, InvalidCredential> {
    let Some(value) = headers.remove(AUTHORIZATION) else { return Ok(None) };
    let Some((scheme, rest)) = split_once(value.as_bytes().trim_ascii(), b' ') else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    let token = split_once(rest, b' ').map_or(rest, |(token, _)| token);
    let token = std::str::from_utf8(token).map_err(|_| InvalidCredential)?;
    Ok(Some(token).filter(|token| !token.is_empty()).map(str::to_owned))
}

/// The token among the sub-protocols. The others are kept, because the response contains one of them.
///
/// Unlike in apiserver, the request need not be a WebSocket request: the token is removed from any request.
fn take_protocol(headers: &mut HeaderMap) -> Result<Option<String>, InvalidCredential> {
    let (mut tokens, mut others) = (Vec::new(), Vec::new());
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        for protocol in value.as_bytes().split(|byte| *byte == b',') {
            let protocol = protocol.trim_ascii();
            match protocol.strip_prefix(TOKEN_PROTOCOL.as_bytes()) {
                Some(token) => tokens.push(token.to_vec()),
                None => others.push(protocol),
            }
        }
    }
    if tokens.is_empty() {
        return Ok(None);
    }
    let has_others = others.iter().any(|protocol| !protocol.is_empty());
    let others = HeaderValue::from_bytes(&others.join(&b", "[..])).expect("parts of header values are a header value");
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if has_others {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
    let [token] = &tokens[..] else { return Err(InvalidCredential) };
    let token = URL_SAFE_NO_PAD.decode(token).map_err(|_| InvalidCredential)?;
    let token = String::from_utf8(token).map_err(|_| InvalidCredential)?;
    if token.is_empty() {
        return Ok(None);
    }
    // A server must choose one of the client's sub-protocols, and it must not be the token.
    if has_others { Ok(Some(token)) } else { Err(InvalidCredential) }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

#[cfg(test)]
mod tests;
