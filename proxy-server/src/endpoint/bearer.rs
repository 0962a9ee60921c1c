//! Takes a token of the cluster's OIDC issuer out of a request, so that the agent does not get it.

use http::HeaderMap;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use kube_wire::bearer::{self, InvalidToken};

/// Removes all tokens, and returns the first that is wanted. If none is, changes nothing and returns `None`: they are for the
/// agent. A request with nothing but an invalid token is an error, because that could be the wanted one.
pub(super) fn take(headers: &mut HeaderMap, is_wanted: impl Fn(&str) -> bool) -> Option<Result<String, InvalidToken>> {
    let mut copy = HeaderMap::new();
    for name in [AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL] {
        for value in headers.get_all(&name) {
            copy.append(&name, value.clone());
        }
    }
    let found = bearer::take(&mut copy);
    let is_invalid = found.iter().any(Result::is_err) && !found.iter().any(|found| matches!(found, Ok(Some(_))));
    let wanted = found.into_iter().filter_map(Result::ok).flatten().find(|token| is_wanted(token));
    let taken = wanted.map(Ok).or_else(|| is_invalid.then_some(Err(InvalidToken)))?;
    for name in [AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL] {
        headers.remove(name);
    }
    for (name, value) in &copy {
        headers.append(name, value.clone());
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: &str = "base64url.bearer.authorization.k8s.io.c2Vjb25k";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn all_tokens_leave_with_the_wanted_one() {
        let protocols = format!("{SECOND}, v4.channel.k8s.io");
        let sent = headers(&[("authorization", "Bearer first"), ("sec-websocket-protocol", &protocols), ("a", "b")]);
        for wanted in ["first", "second"] {
            let mut left = sent.clone();
            assert_eq!(take(&mut left, |token| token == wanted), Some(Ok(wanted.to_owned())));
            assert_eq!(left, headers(&[("a", "b"), ("sec-websocket-protocol", "v4.channel.k8s.io")]));
        }
        let mut left = sent.clone();
        assert_eq!((take(&mut left, |token| token == "other"), left), (None, sent));
    }

    #[test]
    fn an_invalid_token_alone_is_refused() {
        let mut alone = headers(&[("sec-websocket-protocol", SECOND)]);
        assert_eq!((take(&mut alone, |_| false), alone), (Some(Err(InvalidToken)), HeaderMap::new()));
        let mut beside = headers(&[("sec-websocket-protocol", SECOND), ("authorization", "Bearer first")]);
        assert_eq!(take(&mut beside, |_| false), None, "the agent tries the other one");
    }
}
