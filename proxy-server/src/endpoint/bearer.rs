//! Bearer tokens in the head of a request, as the agent reads them.
//!
//! If this module overlooked a token that the agent finds, the agent would send it to the host.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL};

/// The WebSocket subprotocol that carries a token if a client cannot set headers (`protocolPrefix` in apiserver's
/// `authentication/request/websocket/protocol.go`).
pub(super) const TOKEN_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// All tokens, in the order in which they are tried.
pub(super) fn tokens(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| of_authorization(value.as_bytes()));
    bearer.into_iter().map(str::to_owned).chain(protocols(headers).filter_map(of_protocol))
}

/// Removes all tokens. `Err` if the rest is no request that a server can answer: it must choose one of the subprotocols,
/// and a token is none.
pub(super) fn remove(headers: &mut HeaderMap) -> Result<(), OnlyToken> {
    headers.remove(AUTHORIZATION);
    if !protocols(headers).any(|protocol| protocol.starts_with(TOKEN_PROTOCOL)) {
        return Ok(());
    }
    let others = protocols(headers).filter(|one| !one.is_empty() && !one.starts_with(TOKEN_PROTOCOL));
    let others = others.collect::<Vec<_>>().join(&b", "[..]);
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    let others = HeaderValue::from_bytes(&others).ok().filter(|others| !others.is_empty()).ok_or(OnlyToken)?;
    headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    Ok(())
}

/// The only subprotocol is a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnlyToken;

/// Parsed as in `bearertoken.go` of apiserver: the scheme is case-insensitive, and the token ends at a space.
fn of_authorization(value: &[u8]) -> Option<&str> {
    let mut parts = value.trim_ascii().split(|byte| *byte == b' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    if scheme.eq_ignore_ascii_case(b"bearer") { std::str::from_utf8(token).ok() } else { None }
}

fn of_protocol(protocol: &[u8]) -> Option<String> {
    let token = URL_SAFE_NO_PAD.decode(protocol.strip_prefix(TOKEN_PROTOCOL)?).ok()?;
    String::from_utf8(token).ok()
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    offered.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn tokens_are_found_where_the_agent_finds_them() {
        for (value, expected) in [
            ("Bearer a.b.c", Some("a.b.c")),
            ("bEaReR a.b.c trailing", Some("a.b.c")),
            ("  Bearer a.b.c  ", Some("a.b.c")),
            ("Bearer  a.b.c", None),
            ("Bearer", None),
            ("Basic a.b.c", None),
        ] {
            let found: Vec<_> = tokens(&headers(&[("authorization", value)])).collect();
            assert_eq!(found.first().map(String::as_str), expected, "{value:?}");
        }
        let several = headers(&[
            ("authorization", "Bearer first"),
            ("authorization", "Bearer ignored"),
            ("sec-websocket-protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2Vjb25k"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.dGhpcmQ"),
        ]);
        assert_eq!(tokens(&several).collect::<Vec<_>>(), ["first", "second", "third"]);
    }

    #[test]
    fn all_tokens_are_removed() {
        let mut sent = headers(&[
            ("authorization", "Bearer first"),
            ("authorization", "Bearer second"),
            ("sec-websocket-protocol", "v5.channel.k8s.io,base64url.bearer.authorization.k8s.io.dA"),
            ("sec-websocket-protocol", "v4.channel.k8s.io"),
        ]);
        assert_eq!(remove(&mut sent), Ok(()));
        assert_eq!(sent, headers(&[("sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io")]));
        let mut sent = headers(&[("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.dA")]);
        assert_eq!(remove(&mut sent), Err(OnlyToken));
        assert_eq!(sent, HeaderMap::new());
        let mut plain = headers(&[("sec-websocket-protocol", "v5.channel.k8s.io")]);
        assert_eq!((remove(&mut plain), plain.len()), (Ok(()), 1));
    }
}
