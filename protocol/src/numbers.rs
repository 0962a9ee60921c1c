//! Moves the numbers in the query of a request target to a header.
//!
//! ```text
//! GET /api/v1/pods?allowWatchBookmarks=true&resourceVersion=&timeoutSeconds=&watch=true
//! x-atoll-numbers: 4711,430
//! ```
//!
//! An informer opens its watch again every few minutes. Karmada opens many watches every 32 s. Their targets differ only in two
//! numbers. Without these numbers, the targets are equal, so the [`field_table`](crate::field_table) can store them.

use http::header::HeaderMap;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri};

/// The values of `PARAMETERS`, in their order, separated by commas. A value that stays in the target is empty here. Only the
/// proxy-server sets it, never a client.
pub const NUMBERS: HeaderName = HeaderName::from_static("x-atoll-numbers");
/// The parameters of watches that are numbers (`ListOptions` in apimachinery's `pkg/apis/meta/v1/types.go`).
const PARAMETERS: [&str; 2] = ["resourceVersion=", "timeoutSeconds="];
/// The number of decimal digits of `u64::MAX`.
const MAX_DIGITS: usize = 20;

/// The header with the numbers does not match the request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed numbers of a request target on the tunnel")]
pub struct MalformedNumbers;

/// Moves the numbers from the target to the headers. Returns whether there were any.
pub fn split(uri: &mut Uri, headers: &mut HeaderMap) -> bool {
    let Some(query) = uri.query() else { return false };
    let mut rest = query.to_owned();
    let numbers = PARAMETERS.map(|parameter| {
        let at = only_value(&rest, parameter)?;
        let length = rest[at..].find('&').unwrap_or(rest.len() - at);
        let number = rest[at..at + length].to_owned();
        is_number(&number).then(|| {
            rest.replace_range(at..at + length, "");
            number
        })
    });
    if numbers.iter().all(Option::is_none) {
        return false;
    }
    let Some(split) = with_query(uri, &rest) else { return false };
    *uri = split;
    let value = numbers.map(Option::unwrap_or_default).join(",");
    headers.insert(NUMBERS, HeaderValue::try_from(value).expect("digits and a comma are a header value"));
    true
}

/// The inverse of [`split`].
pub fn restore(uri: &mut Uri, headers: &mut HeaderMap) -> Result<(), MalformedNumbers> {
    let Some(value) = headers.remove(NUMBERS) else { return Ok(()) };
    let value = value.to_str().map_err(|_| MalformedNumbers)?;
    let mut query = uri.query().ok_or(MalformedNumbers)?.to_owned();
    let numbers: Vec<&str> = value.split(',').collect();
    if numbers.len() != PARAMETERS.len() {
        return Err(MalformedNumbers);
    }
    for (parameter, number) in PARAMETERS.into_iter().zip(numbers).filter(|(_, number)| !number.is_empty()) {
        let at = only_value(&query, parameter).ok_or(MalformedNumbers)?;
        let is_empty = query[at..].is_empty() || query[at..].starts_with('&');
        if !is_empty || !is_number(number) {
            return Err(MalformedNumbers);
        }
        query.insert_str(at, number);
    }
    *uri = with_query(uri, &query).ok_or(MalformedNumbers)?;
    Ok(())
}

fn is_number(text: &str) -> bool {
    (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the value of a parameter begins. `None` unless there is exactly one of this name.
fn only_value(query: &str, parameter: &str) -> Option<usize> {
    let mut at = 0;
    let mut found = None;
    for pair in query.split('&') {
        if pair.starts_with(parameter) && found.replace(at + parameter.len()).is_some() {
            return None;
        }
        at += pair.len() + 1;
    }
    found
}

fn with_query(uri: &Uri, query: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{}?{query}", uri.path())).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split_target(target: &str) -> (String, Option<String>) {
        let (mut uri, mut headers) = (target.parse().unwrap(), HeaderMap::new());
        split(&mut uri, &mut headers);
        (uri.to_string(), headers.get(NUMBERS).map(|value| value.to_str().unwrap().to_owned()))
    }

    fn restored(target: &str, numbers: &'static str) -> Result<String, MalformedNumbers> {
        let mut uri = target.parse().unwrap();
        let mut headers = HeaderMap::from_iter([(NUMBERS, HeaderValue::from_static(numbers))]);
        restore(&mut uri, &mut headers).map(|()| uri.to_string())
    }

    #[test]
    fn the_numbers_of_a_watch() {
        let watch = "https://atoll/api/v1/pods?a=1&resourceVersion=4711&timeoutSeconds=430&watch=true";
        let (target, numbers) = split_target(watch);
        assert_eq!(target, "https://atoll/api/v1/pods?a=1&resourceVersion=&timeoutSeconds=&watch=true");
        assert_eq!(numbers.as_deref(), Some("4711,430"));
        assert_eq!(split_target("/a?timeoutSeconds=1"), ("/a?timeoutSeconds=".to_owned(), Some(",1".to_owned())));
        // A version that is no number, and a parameter with several values, stay.
        for other in [
            "/a",
            "/a?",
            "/a?resourceVersion=",
            "/a?resourceVersion=1a&timeoutSeconds=1.5",
            "/a?xresourceVersion=1",
            "/a?resourceVersion=1&resourceVersion=2",
            "/a?resourceVersion=000000000000000000001",
        ] {
            assert_eq!(split_target(other), (other.to_owned(), None));
        }
    }

    #[test]
    fn numbers_without_a_place_are_malformed() {
        for (target, numbers) in [
            ("/a", "1,"),
            ("/a?b", "1,"),
            ("/a?resourceVersion=", "1"),
            ("/a?resourceVersion=", "1,2"),
            ("/a?resourceVersion=", "1,,"),
            ("/a?resourceVersion=", "x,"),
            ("/a?resourceVersion=3", "1,"),
            ("/a?resourceVersion=&resourceVersion=", "1,"),
        ] {
            assert_eq!(restored(target, numbers), Err(MalformedNumbers), "{target} {numbers}");
        }
        assert_eq!(restored("/a?resourceVersion=&b", "1,").as_deref(), Ok("/a?resourceVersion=1&b"));
    }

    proptest! {
        #[test]
        fn any_target_survives(pairs in proptest::collection::vec(
            "resourceVersion=[0-9]{0,3}|timeoutSeconds=[0-9]{0,3}|resourceVersion|[a-z=%]{0,5}", 0..6,
        )) {
            let target = format!("https://atoll/api/v1/pods?{}", pairs.join("&"));
            let original: Uri = target.parse().unwrap();
            let (mut uri, mut headers) = (original.clone(), HeaderMap::new());
            split(&mut uri, &mut headers);
            prop_assert_eq!(restore(&mut uri, &mut headers), Ok(()));
            prop_assert_eq!((uri, headers.len()), (original, 0));
        }
    }
}
