//! Samples: a sample of JSON is JSON, and not longer; a sample of a message is a message.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::sample::{Counts, Draw};
use rewrite::{json, protobuf};
use serde::de::IgnoredAny;

/// The number of values that each sample keeps without drawing.
const SURE: usize = 20;

fuzz_target!(|data: &[u8]| {
    let Some((draws, body)) = data.split_first_chunk::<8>() else { return };
    let mut draws = u64::from_le_bytes(*draws);
    let mut draw = |counts: Counts| {
        Draw::new(3, counts, SURE, |below| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(draws >> 33).unwrap_or_default() % below
        })
    };

    let text = Bytes::copy_from_slice(body);
    for is_strategic in [false, true] {
        let counts = json::values_above(0, body, is_strategic);
        let managers = json::has_long_manager(body);
        if is_json(body) {
            assert!(counts.is_ok() && managers.is_ok());
            let sample = json::sample(&text, &draw(counts.ok().flatten().unwrap_or_default()), is_strategic);
            let sample = sample.expect("the whole is JSON");
            assert!(is_json(&sample) && sample.len() <= text.len());
        } else if let Ok(Some(counts)) = counts
            && let Ok(sample) = json::sample(&text, &draw(counts), is_strategic)
        {
            assert!(sample.len() <= text.len());
        }
    }

    for may_be_packed in [false, true] {
        protobuf::has_long_manager(body);
        let counts = protobuf::values_above(0, body, may_be_packed).unwrap_or_default();
        let Some(sample) = protobuf::sample(body, &draw(counts), may_be_packed) else { continue };
        assert!(sample.len() <= body.len());
        // No decoder can read a message whose sample cannot be read.
        assert!(protobuf::sample(&sample, &draw(counts), false).is_some());
    }
});

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}
