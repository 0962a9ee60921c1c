use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use kube_wire::bearer::PROTOCOL;
use proptest::prelude::*;

use super::*;

fn tokens(headers: &[(&'static str, &str)]) -> (Vec<String>, bool, HeaderMap) {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    let taken = Credentials::take(&mut map);
    (taken.tokens.iter().map(|token| token.expose().to_owned()).collect(), taken.any_invalid, map)
}

#[test]
fn bearer_tokens_are_parsed_as_by_an_api_server() {
    for (value, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER abc def", Some("abc")),
        (" bearer abc ", Some("abc")),
        ("bearer  abc", None),
        ("bearer", None),
        ("bearer ", None),
        ("Basic abc", None),
        ("", None),
    ] {
        let (found, any_invalid, left) = tokens(&[("authorization", value)]);
        assert_eq!(found, Vec::from_iter(token), "{value:?}");
        assert!(!any_invalid && left.is_empty(), "{value:?}");
    }
    let (found, _, left) = tokens(&[("authorization", "bearer a"), ("authorization", "bearer b")]);
    assert_eq!(found, ["a"], "the first counts");
    assert!(left.is_empty());
}

#[test]
fn a_web_socket_can_have_its_token_in_the_protocols() {
    let token = format!("{PROTOCOL}{}", URL_SAFE_NO_PAD.encode("t~?"));
    for (value, found, bad, left) in [
        (format!("v5.channel.k8s.io, {token}"), Some("t~?"), false, Some("v5.channel.k8s.io")),
        (format!("{token},a,b"), Some("t~?"), false, Some("a, b")),
        (token.clone(), None, true, None),
        (format!("a,{token},{token}"), None, true, Some("a")),
        (format!("a,{PROTOCOL}%"), None, true, Some("a")),
        (format!("a,{PROTOCOL}_w"), None, true, Some("a")),
        (format!("a,{PROTOCOL}"), None, false, Some("a")),
        ("a,b".to_owned(), None, false, Some("a,b")),
    ] {
        let (tokens, any_invalid, headers) = tokens(&[("sec-websocket-protocol", &value)]);
        assert_eq!((tokens, any_invalid), (found.map(str::to_owned).into_iter().collect(), bad), "{value}");
        let rest = headers.get("sec-websocket-protocol").map(|rest| rest.to_str().unwrap());
        assert_eq!(rest, left, "{value}");
    }
}

proptest! {
    #[test]
    fn nothing_that_proves_identity_is_left(
        values in proptest::collection::vec((0..3_usize, "[ -~]{0,40}"), 0..6),
        token in "[a-zA-Z0-9_-]{0,20}",
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &values {
            let name = ["authorization", "sec-websocket-protocol", "x-atoll-groups"][*name];
            headers.append(name, value.parse().unwrap());
        }
        headers.append(SEC_WEBSOCKET_PROTOCOL, format!("x, {PROTOCOL}{token}").parse().unwrap());
        Credentials::take(&mut headers);
        prop_assert!(!headers.contains_key(AUTHORIZATION));
        for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
            prop_assert!(!value.to_str().unwrap().contains(PROTOCOL));
        }
    }
}
