//! Samples: a sample of JSON is JSON, and a sample of a message is a message.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::json::Form;
use rewrite::sample::{Allowance, Counts, Draw};
use rewrite::{field_manager, json, protobuf};
use serde::de::IgnoredAny;

fuzz_target!(|data: &[u8]| {
    let Some((draws, body)) = data.split_first_chunk::<8>() else { return };
    let mut draws = u64::from_le_bytes(*draws);
    let whole = Counts { values: body.len(), numbers: body.len(), text: 0, length: body.len() };
    let draw = Draw::new(3, whole, Allowance::new(5, 20), |below| {
        draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(draws >> 33).unwrap_or_default() % below
    });

    let text = Bytes::copy_from_slice(body);
    for [is_strategic, is_built_in, is_data] in [[false; 3], [true; 3], [false, true, false]] {
        let form = Form { is_strategic, is_built_in, is_data };
        let sample = json::sample(&text, &draw, form);
        if is_json(body) {
            assert!(json::counts_if_sampled(body, form).is_ok() && field_manager::in_json(body).is_ok());
            assert!(is_json(&sample.expect("the whole is JSON")));
        } else if let Ok(sample) = sample {
            // A short text needs at most six bytes for each byte of a text that is not UTF-8.
            assert!(sample.len() <= 6 * text.len());
        }
    }

    field_manager::in_protobuf(body);
    for is_data in [false, true] {
        protobuf::counts_if_sampled(body, is_data);
        let Some(sample) = protobuf::sample(body, &draw, is_data) else { continue };
        assert!(sample.len() <= 6 * body.len());
        // No decoder can read a message whose sample cannot be read.
        assert!(protobuf::sample(&sample, &draw, is_data).is_some());
    }
});

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}
