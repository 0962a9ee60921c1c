//! Watches: however they are cut, and whether or not their frames wait for names, the same comes out.
#![no_main]

use atoll_fuzz::{kind_and_rest, pieces, view};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::schema::program_for;
use rewrite::view::{Filter, StreamError, WatchStream};

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let shown = |chunks: &[Bytes], push: fn(&mut WatchStream, &Bytes, &mut Vec<Bytes>) -> Result<(), StreamError>| {
        let mut stream = WatchStream::new(view(), program_for(group, "v1", resource), Filter::ByNamespace);
        let mut out: Vec<Bytes> = Vec::new();
        let ended_well =
            chunks.iter().all(|chunk| push(&mut stream, chunk, &mut out).is_ok()) && stream.finish().is_ok();
        (out.concat(), ended_well)
    };
    let (whole, ended_well) = shown(&[body.clone()], WatchStream::push);
    for (cut, cut_ended_well) in [shown(&pieces(&body), WatchStream::push), shown(&pieces(&body), read)] {
        assert_eq!(ended_well, cut_ended_well);
        if ended_well {
            assert_eq!(whole, cut);
        }
    }
});

/// Waits for no name longer than it must.
fn read(stream: &mut WatchStream, chunk: &Bytes, out: &mut Vec<Bytes>) -> Result<(), StreamError> {
    let mut arrived = stream.read(chunk, out)?;
    while !arrived.unknown.is_empty() {
        stream.give_up();
        arrived = stream.resume(out)?;
    }
    Ok(())
}
