//! Request bodies in protobuf: hostile bytes end in an error, and a refused body reaches nobody.
#![no_main]

use atoll_fuzz::{kind_and_rest, request};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::protobuf::ObjectName;
use rewrite::schema::proto_program_for;

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let _ = ObjectName::of(&body);
    let Some(program) = proto_program_for(group, "v1", resource) else { return };
    let mut out: Vec<Bytes> = Vec::new();
    if request().map_protobuf(program, &body, &mut out).is_err() {
        assert!(out.is_empty(), "a refused body reached the host");
    } else {
        // What is mapped once is understood, though its names are not virtual any more.
        let mapped = Bytes::from(out.concat());
        assert!(ObjectName::of(&mapped).is_ok() || ObjectName::of(&body).is_err());
    }
});
