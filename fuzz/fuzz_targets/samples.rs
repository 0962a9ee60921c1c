//! Samples: a sample of JSON is JSON, and not longer; a sample of a message is a message.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::{json, protobuf};
use serde::de::IgnoredAny;

/// The number of values that each sample keeps without drawing.
const SURE: usize = 20;

fuzz_target!(|data: &[u8]| {
    let Some((draws, body)) = data.split_first_chunk::<8>() else { return };
    let mut draws = u64::from_le_bytes(*draws);
    let mut draw = || {
        draws = draws.rotate_left(1);
        draws & 1 == 1
    };

    let text = Bytes::copy_from_slice(body);
    if is_json(body) {
        assert!(json::values_above(0, body).is_ok());
        let sample = json::sample(&text, SURE, &mut draw).expect("the whole is JSON");
        assert!(is_json(&sample) && sample.len() <= text.len());
        assert!(json::sample(&text, usize::MAX, || true).is_ok_and(|sample| is_json(&sample)));
    } else if let Ok(sample) = json::sample(&text, SURE, &mut draw) {
        assert!(sample.len() <= text.len());
    }

    for may_be_packed in [false, true] {
        let all = protobuf::values_above(0, body, may_be_packed);
        let Some(sample) = protobuf::sample(body, SURE, may_be_packed, &mut draw) else { continue };
        assert!(sample.len() <= body.len());
        assert!(protobuf::values_above(0, &sample, may_be_packed) <= all);
        // No decoder can read a message whose sample cannot be read.
        assert!(protobuf::sample(&sample, SURE, may_be_packed, || true).is_some());
    }
});

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}
