//! The heads of requests in the tunnel: from a hostile peer, and from our own encoder. Each line is a request: its target, and fields
//! that are separated by tabs.
#![no_main]

use http::{HeaderName, HeaderValue, Request};
use libfuzzer_sys::fuzz_target;
use protocol::field_table::{Decoder, Encoder};
use protocol::prefetch;

/// The request that a line describes, with all its fields.
fn request(line: &str) -> Option<Request<()>> {
    let mut fields = line.split('\t');
    let mut request = Request::get(format!("https://atoll/{}", fields.next()?)).body(()).ok()?;
    for field in fields {
        let (name, value) = field.split_once(':')?;
        request.headers_mut().append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
    }
    Some(request)
}

fuzz_target!(|text: &str| {
    let (mut hostile, mut encoder, mut decoder) = (Decoder::default(), Encoder::default(), Decoder::default());
    for original in text.lines().filter_map(request) {
        let mut arrived = original.clone();
        let _ = hostile.decode(&mut arrived);
        for named in prefetch::take(arrived.headers_mut()) {
            assert!(named.is_valid());
            prefetch::write(std::slice::from_ref(&named), arrived.headers_mut());
            assert_eq!(prefetch::take(arrived.headers_mut()), [named]);
        }
        let _ = prefetch::unchanged(arrived.headers());

        // The proxy-server has removed what the client must not set.
        let mut sent = original;
        let of_client = |name: &HeaderName| name.as_str().starts_with("x-atoll-");
        let removed: Vec<_> = sent.headers().keys().filter(|name| of_client(name)).cloned().collect();
        for name in removed {
            sent.headers_mut().remove(name);
        }
        let expected = sent.clone();
        let definition = encoder.encode(&mut sent);
        decoder.decode(&mut sent).expect("our own requests are valid");
        assert_eq!((sent.uri(), sent.headers()), (expected.uri(), expected.headers()));
        encoder.stored(definition);
    }
});
