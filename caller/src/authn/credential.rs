//! What the headers of a request prove identity with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use ops::secret::Secret;
use protocol::identity::Identity;

/// A browser cannot set `Authorization` on a WebSocket, so a token may be one of the sub-protocols
/// (`k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`).
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// All of it, in the order in which it is tried.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) certificate: Option<Identity>,
    pub(super) tokens: Vec<Secret>,
    /// Something is there that cannot even be read.
    pub(super) any_bad: bool,
}

/// A sub-protocol that is no token, or that must not be the only one.
struct Bad;

// === impl Credentials ===

impl Credentials {
    /// Takes them out of the headers. None is left there, whatever comes of it.
    pub(super) fn take(headers: &mut HeaderMap) -> Self {
        let mut taken = Self { certificate: None, tokens: Vec::new(), any_bad: false };
        match Identity::take(headers) {
            // A certificate without a common name is nobody's (`x509.CommonNameUserConversion`).
            Ok(identity) => taken.certificate = identity.filter(|identity| !identity.user.is_empty()),
            Err(_) => taken.any_bad = true,
        }
        for found in [take_bearer(headers), take_protocol(headers)] {
            match found {
                Ok(token) => taken.tokens.extend(token.map(Secret::from)),
                Err(Bad) => taken.any_bad = true,
            }
        }
        taken
    }
}

/// As `bearertoken.go` of apiserver reads it: the first header counts, the scheme in any case, the token ends at a
/// space. Another scheme is no credential here.
fn take_bearer(headers: &mut HeaderMap) -> Result<Option<String>, Bad> {
    let Some(value) = headers.remove(AUTHORIZATION) else { return Ok(None) };
    let Some((scheme, rest)) = split_once(value.as_bytes().trim_ascii(), b' ') else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    let token = split_once(rest, b' ').map_or(rest, |(token, _)| token);
    let token = std::str::from_utf8(token).map_err(|_| Bad)?;
    Ok(Some(token).filter(|token| !token.is_empty()).map(str::to_owned))
}

/// The token among the sub-protocols. The others stay: one of them is the answer to the client.
///
/// Unlike there, the request need not be a WebSocket's: a header that only those have is removed from any.
fn take_protocol(headers: &mut HeaderMap) -> Result<Option<String>, Bad> {
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
    let [token] = &tokens[..] else { return Err(Bad) };
    let token = URL_SAFE_NO_PAD.decode(token).map_err(|_| Bad)?;
    let token = String::from_utf8(token).map_err(|_| Bad)?;
    if token.is_empty() {
        return Ok(None);
    }
    // A server must choose one of the client's sub-protocols, and it must not be the token.
    if has_others { Ok(Some(token)) } else { Err(Bad) }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

#[cfg(test)]
mod tests;
