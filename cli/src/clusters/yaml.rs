//! Writes JSON values as YAML that every parser reads alike.
//!
//! YAML 1.1, which Kubernetes' own parser follows, reads a plain `on` or `1e3` as a boolean or a number, and YAML 1.2 does not. So
//! all texts are in double quotes, except keys that are plain in both.

use std::fmt::Write as _;

use serde_json::Value;

/// The value as a document, without a separator.
pub(super) fn document(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => block(value, 0, &mut text),
        scalar => {
            inline(scalar, &mut text);
            text.push('\n');
        }
    }
    text
}

/// The lines of a container that is not empty. The first line is not indented.
fn block(value: &Value, indent: usize, text: &mut String) {
    let mut is_first = true;
    let mut begin = |text: &mut String| {
        if !std::mem::replace(&mut is_first, false) {
            text.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                begin(text);
                self::key(key, text);
                text.push(':');
                match member {
                    Value::Object(_) if !is_empty(member) => {
                        text.push('\n');
                        text.extend(std::iter::repeat_n(' ', indent + 2));
                        block(member, indent + 2, text);
                    }
                    Value::Array(_) if !is_empty(member) => {
                        text.push('\n');
                        text.extend(std::iter::repeat_n(' ', indent));
                        block(member, indent, text);
                    }
                    scalar => {
                        text.push(' ');
                        inline(scalar, text);
                        text.push('\n');
                    }
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                begin(text);
                text.push_str("- ");
                match element {
                    Value::Object(_) | Value::Array(_) if !is_empty(element) => block(element, indent + 2, text),
                    scalar => {
                        inline(scalar, text);
                        text.push('\n');
                    }
                }
            }
        }
        scalar => inline(scalar, text),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

/// A scalar, or an empty container.
fn inline(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => quoted(string, text),
        other => text.push_str(&other.to_string()),
    }
}

fn key(key: &str, text: &mut String) {
    let is_plain = key.len() > 3
        && key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.ends_with(|last: char| last.is_ascii_alphanumeric())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && !["true", "false", "null"].iter().any(|word| key.eq_ignore_ascii_case(word));
    if is_plain { text.push_str(key) } else { quoted(key, text) }
}

/// In double quotes. JSON's escapes are valid in YAML. Characters that YAML does not accept as they are need one, too.
fn quoted(string: &str, text: &mut String) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            char if char.is_control()
                || matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                write!(text, "\\u{:04x}", u32::from(char)).expect("writing to a String cannot fail");
            }
            char => text.push(char),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            prop_oneof![Just("on"), Just("1e3"), Just("0o7"), Just("~"), Just("- a"), Just("a: b"), Just("---")]
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let key = prop_oneof!["[a-z./]{0,8}", Just("null".to_owned()), Just("y".to_owned()), any::<String>()];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn it_looks_like_kubectls() {
        let value = json!({
            "kind": "List", "metadata": {"labels": {"a": "on"}, "empty": {}},
            "items": [{"name": "x", "ports": [1, 2]}, "text\n---", []],
        });
        let expected = "\
items:
- name: \"x\"
  ports:
  - 1
  - 2
- \"text\\n---\"
- []
kind: \"List\"
metadata:
  empty: {}
  labels:
    \"a\": \"on\"
";
        assert_eq!(document(&value), expected);
    }

    proptest! {
        #[test]
        fn a_parser_reads_what_was_written(value in any_value()) {
            let text = document(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }

        #[test]
        fn no_line_is_a_separator(value in any_value()) {
            prop_assert!(!document(&value).lines().any(|line| line.starts_with("---") || line.starts_with("...")));
        }
    }
}
