//! YAML: what is converted is JSON, and JSON that is converted once more stays as it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rewrite::json::Cursor;
use rewrite::yaml::to_json;

fuzz_target!(|input: &[u8]| {
    let Ok(converted) = to_json(input) else { return };
    let mut cursor = Cursor::new(&converted.json, 0, 0);
    cursor.skip().and_then(|()| cursor.finish()).expect("it is JSON");
    // Unless it is too deep, or a key too long, for YAML.
    if let Ok(again) = to_json(&converted.json) {
        // `-.0` is a float, which becomes `-0` in JSON. In YAML, `-0` is the integer 0. Go does the same.
        if !converted.json.windows(2).any(|pair| pair == b"-0") {
            assert_eq!(String::from_utf8_lossy(&again.json), String::from_utf8_lossy(&converted.json));
        }
        assert!(again.duplicates.is_empty());
    }
});
