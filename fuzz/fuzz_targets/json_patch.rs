//! JSON patches: whatever one says, it ends, and what comes of it is JSON. The patch is the first line, the object the rest.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rewrite::json::Cursor;
use rewrite::json_patch::JsonPatch;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (patch, object) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let Ok(patch) = JsonPatch::parse(&Bytes::copy_from_slice(patch)) else { return };
    assert!(patch.pointers().count() <= 20_000);
    let mut whole = Cursor::new(object, 0, 0);
    if whole.skip().and_then(|()| whole.finish()).is_err() {
        return;
    }
    if let Ok(patched) = patch.apply(Bytes::copy_from_slice(object)) {
        let mut cursor = Cursor::new(&patched, 0, 0);
        // A value that was moved into another one may be deeper than any text that is read.
        if let Err(malformed) = cursor.skip().and_then(|()| cursor.finish()) {
            assert_eq!(malformed.defect, rewrite::json::Defect::TooDeep);
        }
    }
});
