use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::json::tests::json;

/// A text without white space between tokens, as API servers and most clients write it.
fn compact() -> impl Strategy<Value = String> {
    json().prop_map(|text| serde_json::from_str::<Value>(&text).unwrap().to_string())
}

/// `[text,text,...]`, long enough for several blocks, so that its parts begin anywhere in a block.
fn long(text: &str, lead: usize) -> String {
    format!("[\"{}\"{}]", "x".repeat(lead), format!(",{text}").repeat(8))
}

fn is_skipped_as_compact(text: &str) -> bool {
    matches!(compact::container(text.as_bytes(), 0, 0), Skipped::To(end) if end == text.len())
}

#[test]
fn containers_of_any_length_are_skipped_as_compact() {
    let items = [
        "{}",
        "[]",
        r#"{"a":{}}"#,
        r#"{"a":[],"b":-1.5e+3,"c":true,"d":null,"e":false}"#,
        r#"[[1,"a",{"b":"c"}],0,"d"]"#,
        r#"{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{}},"\\":"\u00e4\\"}"#,
        r#"{"{[,:]}":"{[,:]}\"","":""}"#,
        "\"\\\\\\\\\"",
    ];
    for item in items {
        for lead in 0..130 {
            let text = long(item, lead);
            assert!(is_skipped_as_compact(&text), "{text}");
            let behind = format!("{text}\n\\ \u{1}}}");
            assert_eq!(value(behind.as_bytes(), 0, 0), Ok(text.len()));
            for end in (1..text.len()).filter(|end| (end + lead).is_multiple_of(29)) {
                let cut = &text.as_bytes()[..end];
                assert_eq!(value(cut, 0, 0), Err(Malformed { offset: end, defect: Defect::UnexpectedEnd }), "{end}");
            }
        }
    }
}

#[test]
fn deep_containers_are_skipped_too() {
    for depth in [1, 2, 62, 63, 64, 65, 200] {
        let text = format!("{}{}", r#"{"a":["#.repeat(depth), "]}".repeat(depth));
        assert_eq!(value(text.as_bytes(), 0, 0), Ok(text.len()));
        assert_eq!(is_skipped_as_compact(&text), depth < 32);
    }
}

proptest! {
    #[test]
    fn compact_containers_are_skipped_as_compact(text in compact(), lead in 0..70_usize) {
        let text = long(&text, lead);
        prop_assert!(is_skipped_as_compact(&text), "{}", text);
    }

    /// Both scanners agree about each text: where it ends, or where its error is.
    #[test]
    fn both_scanners_agree(
        text in prop_oneof![compact(), json()],
        lead in 0..70_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), "[\\[\\]{}\",:0-9ae.\\\\ \n\u{1}\u{7f}-]", 0..3), 0..3),
        depth in prop_oneof![9 => Just(0_usize), 1 => 9_900..10_001_usize],
    ) {
        let mut text = long(&text, lead).into_bytes();
        for (at, byte, how) in changes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte.as_bytes()[0],
                1 => text.insert(at, byte.as_bytes()[0]),
                _ => text.truncate(at + 1),
            }
        }
        prop_assert_eq!(value(&text, 0, depth), tokens(&text, 0, depth), "{}", String::from_utf8_lossy(&text));
    }
}
