//! Values that always have the same shape.

/// `9` is a digit, `x` a hexadecimal digit, and `a` a letter.
const SHAPES: [(&str, &str); 5] = [
    ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "UID"),
    // RFC 3339. `rest_of_time` removes the rest after the seconds.
    ("9999-99-99T99:99:99", "TIME"),
    // The default format of Go, in `kubectl describe networkpolicy`.
    ("9999-99-99 99:99:99 +9999 aaa", "TIME"),
    // RFC 1123, in `kubectl describe`.
    ("aaa, 99 aaa 9999 99:99:99 +9999", "TIME"),
    // The head of a line of kubectl's log: severity and day, time, thread.
    ("a9999 99:99:99.999999", "LOG"),
];

/// Replaces each value of a shape by the name of the shape.
pub(super) fn mask(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let in_word = result.ends_with(|char: char| char.is_ascii_alphanumeric());
        let found = SHAPES.iter().find(|(shape, _)| !in_word && fits(rest, shape));
        if let Some((shape, name)) = found {
            result.push_str(name);
            rest = &rest[shape.len()..];
            match *name {
                "TIME" => rest = rest_of_time(rest),
                "LOG" => rest = rest.trim_start().trim_start_matches(|char: char| char.is_ascii_digit()),
                _ => {}
            }
        } else {
            result.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    result
}

fn fits(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, kind)| match kind {
            b'9' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            b'a' => byte.is_ascii_alphabetic(),
            _ => byte == kind,
        })
}

/// Skips a fraction of a second, and `Z` or an offset.
fn rest_of_time(text: &str) -> &str {
    let text = match text.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|char: char| char.is_ascii_digit()),
        None => text,
    };
    if fits(text, "+99:99") || fits(text, "-99:99") { &text[6..] } else { text.strip_prefix('Z').unwrap_or(text) }
}
