use proptest::prelude::*;

use super::*;

fn request(target: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::get(format!("https://atoll{target}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

fn parts(request: &Request<()>) -> (Uri, HeaderMap) {
    (request.uri().clone(), request.headers().clone())
}

/// Sends a request, and returns what crosses the tunnel. The other end sees the same request.
fn exchange(encoder: &mut Encoder, decoder: &mut Decoder, request: &Request<()>) -> Request<()> {
    let mut sent = request.clone();
    let definition = encoder.encode(&mut sent);
    let on_tunnel = sent.clone();
    assert_eq!(decoder.decode(&mut sent), Ok(()));
    assert_eq!(parts(&sent), parts(request));
    encoder.stored(definition);
    on_tunnel
}

#[test]
fn a_field_is_sent_once() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let (token, agent) = (format!("Bearer {}", "t".repeat(900)), "karmada-controller-manager");
    let headers = [("x-atoll-authorization", &*token), ("user-agent", agent), ("accept", "*/*")];
    let first = exchange(&mut encoder, &mut decoder, &request("/readyz?timeout=32s", &headers));
    assert_eq!(first.headers()[&DEFINE], "0 x-atoll-authorization,1 user-agent");
    assert_eq!(
        (first.uri().path(), &first.headers()[&TARGET]),
        ("/", &HeaderValue::from_static("/readyz?timeout=32s"))
    );
    let watch = "/api/v1/pods?resourceVersion=17&timeoutSeconds=400&watch=true";
    exchange(&mut encoder, &mut decoder, &request(watch, &headers));
    let again = "/api/v1/pods?resourceVersion=23&timeoutSeconds=333&watch=true";
    let again = exchange(&mut encoder, &mut decoder, &request(again, &headers));
    let expected = request("/", &[("accept", "*/*"), ("x-atoll-numbers", "23,333"), ("x-atoll-fields", "021")]);
    assert_eq!(parts(&again), parts(&expected));
    // The path of another request, and a value that a header has twice, stay.
    let twice = [("user-agent", agent), ("user-agent", agent)];
    let other = request("/api/v1/namespaces/default/pods/a", &twice);
    assert_eq!(parts(&exchange(&mut encoder, &mut decoder, &other)), parts(&other));
}

#[test]
fn a_field_is_named_only_when_it_is_stored() {
    let mut encoder = Encoder::default();
    let agent = [("user-agent", "karmada-controller-manager")];
    let mut first = request("/a", &agent);
    let lost = encoder.encode(&mut first);
    let mut second = request("/a", &agent);
    let stored = encoder.encode(&mut second);
    assert_eq!((first.headers()[&DEFINE].clone(), second.headers().len()), (second.headers()[&DEFINE].clone(), 2));
    drop(lost);
    encoder.stored(stored);
    let mut third = request("/a", &agent);
    let _ = encoder.encode(&mut third);
    assert_eq!(third.headers().len(), 1);
}

/// Otherwise, the length of a request would tell whether another cluster has sent the same value.
#[test]
fn clusters_share_no_numbers() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    for (cluster, number) in [("a", "0 user-agent"), ("b", "1 user-agent")] {
        let headers = [("x-atoll-cluster", cluster), ("user-agent", "karmada-controller-manager")];
        let first = exchange(&mut encoder, &mut decoder, &request("/a", &headers));
        assert_eq!(first.headers()[&DEFINE], number);
    }
}

#[test]
fn values_are_not_printed() {
    let mut encoder = Encoder::default();
    let definition = encoder.encode(&mut request("/a", &[("x-atoll-authorization", "Bearer a-secret-of-a-client")]));
    assert!(!format!("{encoder:?} {definition:?}").contains("secret"));
}

#[test]
fn numbers_survive() {
    let mut text = String::new();
    (0..MAX_FIELDS).for_each(|number| write_number(&mut text, number));
    assert!(text.starts_with("0123") && text.len() < 2 * MAX_FIELDS);
    let mut digits = text.as_bytes().iter();
    for number in 0..MAX_FIELDS {
        assert_eq!(read_number(*digits.next().unwrap(), &mut digits), Some(number));
    }
    assert_eq!(digits.next(), None);
}

#[test]
fn the_oldest_field_leaves() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let agent = |number: usize| format!("a long user agent, number {number}");
    for number in 0..MAX_FIELDS {
        exchange(&mut encoder, &mut decoder, &request("/a", &[("user-agent", &agent(number))]));
    }
    let sent = |encoder: &mut Encoder, decoder: &mut Decoder, number| {
        let sent = exchange(encoder, decoder, &request("/a", &[("user-agent", &agent(number))]));
        sent.headers().get(FIELDS).cloned().unwrap_or(HeaderValue::from_static("-"))
    };
    assert_eq!(sent(&mut encoder, &mut decoder, 0), "0");
    // The new one gets the number of the second one.
    assert_eq!(sent(&mut encoder, &mut decoder, MAX_FIELDS), "-");
    assert_eq!(sent(&mut encoder, &mut decoder, MAX_FIELDS), "1");
    assert_eq!(sent(&mut encoder, &mut decoder, 1), "-");
    assert_eq!((encoder.entries.len(), decoder.fields.len()), (MAX_FIELDS, MAX_FIELDS));
}

#[test]
fn a_late_response_does_not_restore_a_field() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let agent = |number: usize| format!("a long user agent, number {number}");
    let late = encoder.encode(&mut request("/a", &[("user-agent", &agent(MAX_FIELDS))]));
    for number in 0..MAX_FIELDS {
        exchange(&mut encoder, &mut decoder, &request("/a", &[("user-agent", &agent(number))]));
    }
    let mut again = request("/a", &[("user-agent", &agent(MAX_FIELDS))]);
    let _lost = encoder.encode(&mut again);
    encoder.stored(late);
    let defined = exchange(&mut encoder, &mut decoder, &request("/a", &[("user-agent", &agent(MAX_FIELDS))]));
    assert!(defined.headers().contains_key(DEFINE) && !defined.headers().contains_key(FIELDS));
}

#[test]
fn unknown_and_double_fields_are_malformed() {
    let long = "a long value of a header";
    for headers in [
        &[("x-atoll-fields", "0")][..],
        &[("x-atoll-fields", "w")],
        &[("x-atoll-fields", ",")],
        &[("x-atoll-fields", "x")],
        &[("x-atoll-define", "0 user-agent")],
        &[("x-atoll-define", "0"), ("user-agent", long)],
        &[("x-atoll-define", "1024 user-agent"), ("user-agent", long)],
        &[("x-atoll-define", "0 x-atoll-cluster"), ("x-atoll-cluster", long)],
        &[("x-atoll-define", "0 user-agent"), ("user-agent", "short")],
        &[("x-atoll-define", "0 user-agent"), ("x-atoll-fields", "0"), ("user-agent", long)],
        &[("x-atoll-target", "no path")],
        &[("x-atoll-numbers", "1,")],
    ] {
        assert_eq!(Decoder::default().decode(&mut request("/a", headers)), Err(MalformedFields), "{headers:?}");
    }
}

proptest! {
    #[test]
    fn any_requests_survive(requests in proptest::collection::vec(
        (
            "/(readyz|apis|api/v1/pods)(\\?(resourceVersion=[0-9]{1,2}&)?watch=true)?",
            proptest::collection::vec(("user-agent|accept|x-atoll-user|x-other", "[a-c]{19,21}"), 0..5),
            any::<bool>(),
        ),
        0..30,
    )) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (target, headers, is_answered) in requests {
            let mut original = request(&target, &[]);
            for (name, value) in headers {
                original.headers_mut().append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
            }
            let mut sent = original.clone();
            let definition = encoder.encode(&mut sent);
            prop_assert_eq!(decoder.decode(&mut sent), Ok(()));
            prop_assert_eq!(parts(&sent), parts(&original));
            if is_answered {
                encoder.stored(definition);
            }
        }
    }

    #[test]
    fn hostile_heads_are_no_panic(define in "[0-9 a-z,-]{0,40}", fields in "[0-9A-Z,]{0,10}", target in "[ -~]{0,20}") {
        let headers = [("x-atoll-define", &*define), ("x-atoll-fields", &*fields), ("x-atoll-target", &*target)];
        let _ = Decoder::default().decode(&mut request("/a?resourceVersion=", &headers));
    }
}
