//! The frames of watches: however they are cut, the same frames.
#![no_main]

use atoll_fuzz::pieces;
use bytes::Bytes;
use kube_wire::envelope::Envelope;
use kube_wire::watch::{JsonFrames, ProtobufFrames};
use libfuzzer_sys::fuzz_target;

macro_rules! frames {
    ($frames:expr, $chunks:expr) => {{
        let mut frames = $frames;
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut is_good = true;
        'chunks: for chunk in $chunks {
            is_good = frames.push(chunk).is_ok();
            while is_good {
                match frames.next_frame() {
                    Ok(Some(frame)) => found.push(frame.to_vec()),
                    Ok(None) => continue 'chunks,
                    Err(_) => is_good = false,
                }
            }
            break;
        }
        (found, is_good)
    }};
}

fuzz_target!(|data: &[u8]| {
    let data = Bytes::copy_from_slice(data);
    let (whole, cut) = (vec![data.clone()], pieces(&data));
    let (frames, is_good) = frames!(JsonFrames::new(1 << 20), &whole);
    let (cut_frames, cut_is_good) = frames!(JsonFrames::new(1 << 20), &cut);
    if is_good && cut_is_good {
        assert_eq!(frames, cut_frames);
    }
    let (frames, is_good) = frames!(ProtobufFrames::new(1 << 20), &whole);
    let (cut_frames, cut_is_good) = frames!(ProtobufFrames::new(1 << 20), &cut);
    if is_good && cut_is_good {
        assert_eq!(frames, cut_frames);
    }
    for frame in &frames {
        let _ = Envelope::decode(frame);
    }
});
