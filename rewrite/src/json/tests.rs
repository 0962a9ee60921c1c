use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Any JSON value, as text with arbitrary white space.
pub(crate) fn json() -> impl Strategy<Value = String> {
    let space = || "[ \n\t\r]{0,2}";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        string(),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let element = (space(), inner, space()).prop_map(|(before, value, behind)| format!("{before}{value}{behind}"));
        let member = (space(), string(), space(), element.clone())
            .prop_map(|(before, key, behind, value)| format!("{before}{key}{behind}:{value}"));
        prop_oneof![
            proptest::collection::vec(element, 0..5).prop_map(|elements| format!("[{}]", elements.join(","))),
            proptest::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{0,9}",
        1 => r#"\\[bfnrt"\\/]"#,
        1 => r"\\u00[2-7][0-9a-fA-F]",
        1 => Just(r"\ud83d\ude00".to_owned()),
        1 => "[äß€😀]{1,2}",
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn accepts(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text, 0, 0);
    cursor.skip().and_then(|()| cursor.finish()).is_ok()
}

/// Enters every container, so that nothing is skipped.
fn walk_all(cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
    match cursor.peek()? {
        b'{' => cursor.object(&mut Edits::new(), |cursor, _, _| walk_all(cursor).map(|()| Outcome::Keep)).map(drop),
        b'[' => cursor.array(&mut Edits::new(), |cursor, _, _| walk_all(cursor).map(|()| Outcome::Keep)).map(drop),
        _ => cursor.skip(),
    }
}

fn spliced(text: &str, edits: &mut Edits) -> String {
    let mut out: Vec<Bytes> = Vec::new();
    edits.splice(&Bytes::copy_from_slice(text.as_bytes()), 0..text.len(), &mut out);
    String::from_utf8(out.concat()).unwrap()
}

#[test]
fn json_that_go_refuses_is_refused() {
    for bad in [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[}",
        "{]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{1:2}",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "--1",
        "1.e3",
        "0x1",
        "tru",
        "truee",
        "nul",
        "True",
        "NaN",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "'a'",
        "1 2",
        "{} {}",
        "{},",
        "\u{feff}{}",
        "[1]]",
        "//",
        "{\"a\":1}}",
        "\u{0}",
        "\u{c}1",
        "\u{a0}1",
    ] {
        assert!(!accepts(bad.as_bytes()), "{bad:?}");
        assert!(serde_json::from_str::<Value>(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn json_that_only_go_accepts_is_accepted() {
    // Lone surrogates, invalid UTF-8 and numbers of any size: Go decodes them to something.
    assert!(accepts(br#""\ud800""#));
    assert!(accepts(b"\"\xff\xfe\""));
    assert!(accepts(b"1e999"));
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    assert!(accepts(&nested(10_100)));
    let error = Cursor::new(&nested(10_101), 0, 0).skip().unwrap_err();
    assert_eq!(error, Malformed { offset: 10_100, defect: Defect::TooDeep });
    // Containers that were entered count too.
    assert!(Cursor::new(&nested(10_100), 0, 1).skip().is_err());
    let objects = b"{\"a\":".repeat(200_000);
    assert_eq!(Cursor::new(&objects, 0, 0).skip().unwrap_err().defect, Defect::TooDeep);
}

#[test]
fn brackets_must_match_at_any_depth() {
    let open = |level: usize| if level.is_multiple_of(3) { "[" } else { "{\"a\":" };
    let close = |level: usize| if level.is_multiple_of(3) { "]" } else { "}" };
    for depth in [1, 63, 64, 65, 127, 128, 129, 130, 500] {
        let opened: String = (0..depth).map(open).collect();
        let closed: Vec<_> = (0..depth).rev().map(close).collect();
        assert!(accepts(format!("{opened}1{}", closed.concat()).as_bytes()), "{depth}");
        for wrong in 0..depth {
            let mut closed = closed.clone();
            closed[wrong] = if closed[wrong] == "]" { "}" } else { "]" };
            assert!(!accepts(format!("{opened}1{}", closed.concat()).as_bytes()), "{depth}, {wrong}");
        }
    }
}

#[test]
fn strings_decode_as_in_go() {
    for (raw, decoded) in [
        (r"a\u0062c", "abc"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
    ] {
        let text = format!("\"{raw}\"");
        let string = Cursor::new(text.as_bytes(), 0, 0).string().unwrap();
        assert_eq!(string.decode(), decoded);
        assert!(string.is(decoded));
    }
}

#[test]
fn look_up_does_not_move_the_cursor() {
    let cursor = Cursor::new(br#"{"a":{"kind":"x"},"k\u0069nd":"y","kind":"z"}"#, 0, 0);
    assert!(cursor.look_up("kind").unwrap().unwrap().is("y"));
    assert!(cursor.look_up("a").unwrap().is_none());
    assert!(cursor.look_up("b").unwrap().is_none());
    assert_eq!(cursor.at(), 0);
}

#[test]
fn paths_are_written_as_in_kubernetes() {
    let mut path = FieldPath::default();
    for step in [Step::Key("kubernetes.io/x"), Step::Key("labels"), Step::Element(3), Step::Key("items")] {
        path.push_outer(step);
    }
    assert_eq!(path.to_string(), "items[3].labels[kubernetes.io/x]");
}

proptest! {
    #[test]
    fn valid_json_is_accepted_unchanged(text in json()) {
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        prop_assert!(accepts(text.as_bytes()));
        let mut cursor = Cursor::new(text.as_bytes(), 0, 0);
        prop_assert_eq!(walk_all(&mut cursor), Ok(()));
        prop_assert_eq!(cursor.finish(), Ok(()));
    }

    /// One byte is changed, removed or added. Both scanners agree with serde_json, which has the same grammar except
    /// for the cases of `json_that_only_go_accepts_is_accepted`.
    #[test]
    fn invalid_json_is_refused(text in json(), at: prop::sample::Index, byte in "[\\[\\]{}\",:0-9ae.\\\\ \u{1}-]", how in 0..3) {
        let at = at.index(text.len());
        prop_assume!(text.is_char_boundary(at) && text.is_char_boundary(at + 1));
        let (before, behind) = match how {
            0 => (&text[..at], &text[at + 1..]),
            1 => (&text[..at], &text[at..]),
            _ => (&text[..=at], ""),
        };
        let broken = format!("{before}{byte}{behind}");
        let oracle = serde_json::from_str::<Value>(&broken);
        prop_assume!(!matches!(&oracle, Err(error) if error.to_string().contains("surrogate")
            || error.to_string().contains("hex escape") || error.to_string().contains("out of range")));
        prop_assert_eq!(accepts(broken.as_bytes()), oracle.is_ok(), "{}", broken);
        let mut cursor = Cursor::new(broken.as_bytes(), 0, 0);
        let walked = walk_all(&mut cursor).and_then(|()| cursor.finish()).is_ok();
        prop_assert_eq!(walked, oracle.is_ok());
    }

    #[test]
    fn no_input_panics(bytes: Vec<u8>) {
        let _ = accepts(&bytes);
        let _ = walk_all(&mut Cursor::new(&bytes, 0, 0));
        let _ = Cursor::new(&bytes, 0, 0).look_up("kind");
        let _ = Boundary::default().find(&bytes);
    }

    #[test]
    fn strings_are_decoded_as_by_serde_json(text in string()) {
        let decoded = serde_json::from_str::<String>(&text).unwrap();
        let cursor = Cursor::new(text.as_bytes(), 0, 0).string().unwrap();
        prop_assert_eq!(cursor.decode(), decoded);
    }

    #[test]
    fn serde_json_decodes_quoted_strings(text: String) {
        prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).unwrap(), text);
    }

    #[test]
    fn commas_of_removed_members_are_removed(members in proptest::collection::vec((string(), json(), any::<bool>()), 0..7)) {
        let text = members.iter().map(|(key, value, _)| format!(" {key} : {value} ")).collect::<Vec<_>>().join(",");
        let text = format!("{{{text}}}");
        let mut edits = Edits::new();
        let mut fates = members.iter().map(|(_, _, keep)| if *keep { Outcome::Keep } else { Outcome::Remove });
        let extent = Cursor::new(text.as_bytes(), 0, 0).object(&mut edits, |cursor, _, _| {
            cursor.skip()?;
            Ok::<_, Malformed>(fates.next().unwrap())
        }).unwrap();
        prop_assert_eq!(extent.kept, members.iter().filter(|(_, _, keep)| *keep).count());
        let shown: Value = serde_json::from_str(&spliced(&text, &mut edits)).unwrap();
        let mut expected = serde_json::Map::new();
        for (key, value, _) in members.iter().filter(|(_, _, keep)| *keep) {
            expected.insert(serde_json::from_str(key).unwrap(), serde_json::from_str(value).unwrap());
        }
        prop_assert_eq!(shown, Value::Object(expected));
    }

    #[test]
    fn one_member_is_removed(before in 0..3_usize, behind in 0..3_usize, space in " ?") {
        let member = |number: usize| format!("{space}\"{number}\"{space}:{space}[{number}]{space}");
        let members: Vec<_> = (0..=before + behind).map(member).collect();
        let text = format!("{{{}}}", members.join(","));
        let mut range = None;
        Cursor::new(text.as_bytes(), 0, 0).object(&mut Edits::new(), |cursor, _, key| {
            let start = cursor.member();
            cursor.skip()?;
            if key.is(&before.to_string()) {
                range = Some(Cut::around(cursor, start).whole);
            }
            Ok::<_, Malformed>(Outcome::Keep)
        }).unwrap();
        let mut edits = Edits::new();
        edits.delete(range.unwrap());
        let shown: serde_json::Map<String, Value> = serde_json::from_str(&spliced(&text, &mut edits)).unwrap();
        prop_assert_eq!(shown.len(), before + behind);
        prop_assert!(!shown.contains_key(&before.to_string()));
    }

    #[test]
    fn boundary_agrees_with_the_scanner(text in json(), rest in "([,\\]} \n].{0,5})", cut: prop::sample::Index) {
        let whole = format!("{text}{rest}");
        let mut cursor = Cursor::new(whole.as_bytes(), 0, 0);
        cursor.skip().unwrap();
        let cut = cut.index(whole.len() + 1);
        let (first, second) = whole.as_bytes().split_at(cut);
        let mut boundary = Boundary::default();
        let end = boundary.find(first).or_else(|| boundary.find(second).map(|end| cut + end));
        prop_assert_eq!(end, Some(cursor.at()));
    }
}
