//! Lists: the boundaries of chunks and the deferral of long items have no effect, and the result is JSON.
#![no_main]

use atoll_fuzz::{is_json, kind_and_rest, pieces, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::{Filter, ListStream};

/// The length of an item, in bytes, beyond which it is deferred. No piece is longer.
const AT_ONCE: usize = 64;

fn shown(group: &str, resource: &str, chunks: &[Bytes], at_once: usize) -> Result<Vec<u8>, ()> {
    let program = program_for(group, "v1", resource);
    let stream = ListStream::new(view(), program, Filter::ByNamespace).sealing(|token| format!("sealed {token}"));
    let mut stream = stream.deferring(at_once);
    let mut out: Vec<Bytes> = Vec::new();
    for chunk in chunks {
        stream.push(chunk, &mut out).map_err(drop)?;
        while stream.waiting().is_some() {
            stream.resume(&mut out).map_err(drop)?;
        }
    }
    stream.finish().map_err(drop)?;
    Ok(out.concat())
}

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let whole = shown(group, resource, &[body.clone()], usize::MAX);
    for at_once in [AT_ONCE, usize::MAX] {
        assert_eq!(shown(group, resource, &pieces(&body), at_once), whole);
    }
    if let (Ok(out), true) = (whole, is_json(&body)) {
        assert!(is_json(&out), "{:?}", String::from_utf8_lossy(&out));
    }
});
