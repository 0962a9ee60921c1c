//! Lists: however they are cut, the same comes out, and it is JSON.
#![no_main]

use atoll_fuzz::{is_json, kind_and_rest, pieces, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::{Filter, ListStream};

fn shown(group: &str, resource: &str, chunks: &[Bytes]) -> Result<Vec<u8>, ()> {
    let program = program_for(group, "v1", resource);
    let mut stream = ListStream::new(view(), program, Filter::ByNamespace).sealing(|token| format!("sealed {token}"));
    let mut out: Vec<Bytes> = Vec::new();
    for chunk in chunks {
        stream.push(chunk, &mut out).map_err(drop)?;
    }
    stream.finish().map_err(drop)?;
    Ok(out.concat())
}

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let whole = shown(group, resource, &[body.clone()]);
    assert_eq!(shown(group, resource, &pieces(&body)), whole);
    if let (Ok(out), true) = (whole, is_json(&body)) {
        assert!(is_json(&out), "{:?}", String::from_utf8_lossy(&out));
    }
});
