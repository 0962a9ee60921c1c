use std::fmt::Write as _;

use proptest::prelude::*;

use super::document::MAX_NODES;
use super::*;

fn json(text: &str) -> Result<String, YamlError> {
    to_json(text.as_bytes()).map(|converted| String::from_utf8(converted.json).unwrap())
}

#[test]
fn documents_are_converted_as_by_go() {
    for (text, expected) in [
        ("defaultMode: 0400", r#"{"defaultMode":256}"#),
        ("a: 1\na: 2", r#"{"a":2}"#),
        ("b: &b {x: 1, z: 2}\na: {<<: *b, x: 3}", r#"{"a":{"x":3,"z":2},"b":{"x":1,"z":2}}"#),
        ("b: &b {x: 1}\na: {x: 3, <<: *b}", r#"{"a":{"x":1},"b":{"x":1}}"#),
        ("a: {<<: [{x: 1}, {x: 2, z: 2}]}", r#"{"a":{"x":1,"z":2}}"#),
        ("b: &b {<<: {x: 1}, z: 2}\na: {<<: *b}", r#"{"a":{"x":1,"z":2},"b":{"x":1,"z":2}}"#),
        ("a: &a [1, *b]\n", "unknown"),
        ("a: &x s\nb: *x\n*x : 1", r#"{"a":"s","b":"s","s":1}"#),
        ("yes: on\n0x10: ~\n\"true\": x", "ambiguous"),
        ("yes: on\n0x10: ~", r#"{"16":null,"true":true}"#),
        ("a: !!str 12\nb: !!int \"12\"\nc: !!float 1\nd: !x 7\ne: ! 7", r#"{"a":"12","b":12,"c":1,"d":"7","e":"7"}"#),
        ("a: 1.0\nb: 1e21\nc: 0.0000001", r#"{"a":1,"b":1e21,"c":1e-7}"#),
        ("a: \"\\x7f\\u2028\\ud83d\"", "syntax"),
        ("a: \"\\x7f\\u2028\\0\"", r#"{"a":"\u007f\u2028\u0000"}"#),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y"}"#),
        ("---\na: 1\n---\nb: 2", r#"{"a":1}"#),
        ("# nothing", "null"),
        ("", "null"),
        ("%YAML 1.2\n---\na: 1", "ambiguous"),
        ("a: !!binary aGk=", "ambiguous"),
        ("1.5: x", "ambiguous"),
        ("~: x", "key"),
        ("[a]: x", "key"),
        ("a: .inf", "number"),
        ("a: !!int x", "tag"),
        ("a: {<<: 1}", "merge"),
        ("a: &a [*a]", "cycle"),
        ("a: &a {b: {<<: *a}}", "cycle"),
        ("a: b\u{85}c", "ambiguous"),
        ("a: 1\n\u{feff}b: 2", "ambiguous"),
        ("a: [b:]", "ambiguous"),
        ("a: {b:}", "ambiguous"),
        ("a: {?b}", "ambiguous"),
        ("a: {b:c, d: [e: f]}", r#"{"a":{"b:c":null,"d":[{"e":"f"}]}}"#),
    ] {
        let found = match json(text) {
            Ok(found) => found,
            Err(YamlError::Syntax(why)) if why.contains("anchor") => "unknown".to_owned(),
            Err(YamlError::Syntax(_)) => "syntax".to_owned(),
            Err(YamlError::Ambiguous(_)) => "ambiguous".to_owned(),
            Err(YamlError::Key) => "key".to_owned(),
            Err(YamlError::Number(_)) => "number".to_owned(),
            Err(YamlError::Tag { .. }) => "tag".to_owned(),
            Err(YamlError::Merge) => "merge".to_owned(),
            Err(YamlError::Cycle) => "cycle".to_owned(),
            Err(other) => other.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }
}

/// With the text of yaml/v2.
#[test]
fn duplicates_are_reported_with_their_lines() {
    let text = "\na: 1\na: 2\nb: {c: 1, c: 2}\nd:\n  e: 1\nd:\n  e: 1\n";
    let told: Vec<_> = to_json(text.as_bytes()).unwrap().duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [("3", "a"), ("4", "c"), ("8", "d")]
            .map(|(line, key)| { format!("line {line}: key \"{key}\" already set in map") })
    );
}

/// Ten levels of ten aliases each would be ten billion nodes.
#[test]
fn aliases_do_not_explode() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        let _ = writeln!(bomb, "a{level}: &a{level} [{aliases}]");
    }
    assert_eq!(json(&bomb), Err(YamlError::Aliases));
    let mut merges = String::from("a0: &a0 {x: 1}\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        let _ = writeln!(merges, "a{level}: &a{level} {{<<: [{aliases}]}}");
    }
    assert_eq!(json(&merges), Err(YamlError::Aliases));
    let long = "x".repeat(100_000);
    let texts = format!("a: &a {long}\nb: [{}]", vec!["*a"; 1000].join(","));
    assert_eq!(json(&texts), Err(YamlError::TooLarge));
    let nodes = |count: usize| format!("[{}]", "1,".repeat(count));
    assert!(json(&nodes(MAX_NODES - 1)).is_ok());
    assert_eq!(json(&nodes(MAX_NODES + 1)), Err(YamlError::TooLarge));
    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..20_000 {
        let _ = writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1);
    }
    assert!(json(&chain).is_err());
    for deep in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "? ".repeat(100_000)] {
        assert!(json(&deep).is_err());
    }
}

proptest! {
    #[test]
    fn json_is_unchanged(text in crate::json::tests::json()) {
        // Only string keys, and numbers that Go writes in the same form.
        let Ok(found) = json(&text) else { return Ok(()) };
        let wanted: serde_json::Value = serde_json::from_str(&text).unwrap();
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        prop_assert!(same(&wanted, &found), "{} {}", wanted, found);
    }

    #[test]
    fn no_input_panics(bytes: Vec<u8>, text in "([a-c<&*!|>'\"\\[\\]{}:,#%?~0-9 .-]|\n|\n  |: |- |<<: |&a |\\*a |!!int |!!str ){0,40}") {
        let _ = to_json(&bytes);
        if let Ok(converted) = to_json(text.as_bytes()) {
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&converted.json).is_ok());
        }
    }
}

/// The same values, whatever type their numbers have.
fn same(one: &serde_json::Value, other: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            // serde_json may be off by the last bit.
            let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
            (one - other).abs() <= one.abs() * 1e-15
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, one), (other_key, other))| key == other_key && same(one, other))
        }
        _ => one == other,
    }
}
