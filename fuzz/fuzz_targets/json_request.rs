//! Request bodies: what passes is JSON, and sending it back through a view gives nothing to refuse.
#![no_main]

use atoll_fuzz::{is_json, kind_and_rest, request, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::Filter;

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let program = program_for(group, "v1", resource);
    for mapper in [request(), request().partial()] {
        let mut out: Vec<Bytes> = Vec::new();
        if mapper.map(&program, &body, &mut out).is_err() {
            assert!(out.is_empty(), "a refused body reached the host");
            continue;
        }
        let mapped = Bytes::from(out.concat());
        if is_json(&body) {
            assert!(is_json(&mapped), "{:?}", String::from_utf8_lossy(&mapped));
        }
        let mut back: Vec<Bytes> = Vec::new();
        view().object(&program, Filter::Everything, &mapped, &mut back).expect("what was mapped is understood");
    }
});
