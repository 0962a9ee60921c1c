//! Answers: what is JSON before is JSON after, and no name of the other cluster's is where names stand.
#![no_main]

use atoll_fuzz::{is_json, kind_and_rest, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::{Filter, Verdict};

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let program = program_for(group, "v1", resource);
    for filter in [Filter::Everything, Filter::ByNamespace, Filter::ByName] {
        let mut out: Vec<Bytes> = Vec::new();
        let verdict = view().object(&program, filter, &body, &mut out);
        if is_json(&body) {
            match verdict {
                Ok(Verdict::Shown) => assert!(is_json(&out.concat()), "{:?}", String::from_utf8_lossy(&out.concat())),
                Ok(Verdict::Foreign | Verdict::Unselected | Verdict::Left) => assert!(out.is_empty()),
                Err(error) => panic!("JSON was refused: {error}"),
            }
        }
    }
});
