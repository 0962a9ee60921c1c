//! Bearer tokens in the headers of a request, as an API server reads them.
//!
//! Both binaries use this module: the proxy-server must find every token that the agent would send to the host.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};

/// A browser cannot set `Authorization` on a WebSocket, so a token may be one of the sub-protocols
/// (`k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`).
pub const PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// A text that is not a token, two tokens among the sub-protocols, or a token as the only sub-protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidToken;

/// Removes all tokens from the headers, including invalid ones. Returns them in the order in which they are tried: the one of
/// `Authorization`, and the one among the sub-protocols.
pub fn take(headers: &mut HeaderMap) -> [Result<Option<String>, InvalidToken>; 2] {
    [take_bearer(headers), take_protocol(headers)]
}

/// Parsed as in `bearertoken.go` of apiserver: the first header is used, the scheme is case-insensitive, and the token
/// ends at a space. Other schemes are ignored.
fn take_bearer(headers: &mut HeaderMap) -> Result<Option<String>, InvalidToken> {
    let Some(value) = headers.remove(AUTHORIZATION) else { return Ok(None) };
    let Some((scheme, rest)) = split_once(value.as_bytes().trim_ascii(), b' ') else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    let token = split_once(rest, b' ').map_or(rest, |(token, _)| token);
    let token = std::str::from_utf8(token).map_err(|_| InvalidToken)?;
    Ok(Some(token).filter(|token| !token.is_empty()).map(str::to_owned))
}

/// The token among the sub-protocols. The others are kept, because the response contains one of them.
///
/// Unlike in apiserver, the request need not be a WebSocket request: the token is removed from any request.
fn take_protocol(headers: &mut HeaderMap) -> Result<Option<String>, InvalidToken> {
    let (mut tokens, mut others) = (Vec::new(), Vec::new());
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        for protocol in value.as_bytes().split(|byte| *byte == b',') {
            let protocol = protocol.trim_ascii();
            match protocol.strip_prefix(PROTOCOL.as_bytes()) {
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
    let [token] = &tokens[..] else { return Err(InvalidToken) };
    let token = URL_SAFE_NO_PAD.decode(token).map_err(|_| InvalidToken)?;
    let token = String::from_utf8(token).map_err(|_| InvalidToken)?;
    if token.is_empty() {
        return Ok(None);
    }
    // A server must choose one of the client's sub-protocols, and it must not be the token.
    if has_others { Ok(Some(token)) } else { Err(InvalidToken) }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}
