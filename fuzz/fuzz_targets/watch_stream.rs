//! Watches: however they are cut, the same comes out.
#![no_main]

use atoll_fuzz::{kind_and_rest, pieces, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::{Filter, WatchStream};

fn shown(group: &str, resource: &str, chunks: &[Bytes]) -> (Vec<u8>, bool) {
    let mut stream = WatchStream::new(view(), program_for(group, "v1", resource), Filter::ByNamespace);
    let mut out: Vec<Bytes> = Vec::new();
    let ended_well = chunks.iter().all(|chunk| stream.push(chunk, &mut out).is_ok()) && stream.finish().is_ok();
    (out.concat(), ended_well)
}

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let (whole, ended_well) = shown(group, resource, &[body.clone()]);
    let (cut, cut_ended_well) = shown(group, resource, &pieces(&body));
    assert_eq!(ended_well, cut_ended_well);
    if ended_well {
        assert_eq!(whole, cut);
    }
});
