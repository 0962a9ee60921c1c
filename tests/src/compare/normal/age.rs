//! Ages, in the notation of kubectl.

use super::run;

/// Replaces each age in a column by `AGE`, and removes the counts of events.
///
/// A quantity can look like an age, for example `100m` of CPU. But it comes after a name and a colon, or is part of a
/// text. An age has a separate column.
pub(super) fn mask(text: &str) -> String {
    // A cell of a Table in JSON is a text without a key.
    let cell = text.trim().trim_end_matches(',');
    if cell.strip_prefix('"').and_then(|text| text.strip_suffix('"')).is_some_and(is_age) {
        return text.replace(cell, "\"AGE\"");
    }
    run::replace(
        &without_count(text),
        |char| char != ' ',
        |before, run, after| {
            let name = before.trim_end();
            let begins = before.is_empty() || before.ends_with("  ");
            let ends = after.is_empty() || after.starts_with("  ");
            let named = name.ends_with(':') && !name.ends_with("Duration:");
            (begins && ends && !named && is_age(run)).then(|| "AGE".to_owned())
        },
    )
}

/// Whether this is a duration of kubectl: `5s`, `2m3s`, `3d4h`, `2y10d`, or `<invalid>` if it is negative.
fn is_age(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text;
    while let length @ 1.. = digits(rest) {
        let Some(next) = rest[length..].strip_prefix(['y', 'd', 'h', 'm', 's']) else { return false };
        rest = next;
    }
    text == "<invalid>" || (!text.is_empty() && rest.is_empty())
}

/// Removes counts such as ` (x3 over 2m)`.
fn without_count(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (x") {
        let count = after.split_once(')').filter(|(count, _)| count.contains(" over "));
        result.push_str(before);
        if let Some((_, after)) = count {
            rest = after;
        } else {
            result.push_str(" (x");
            rest = after;
        }
    }
    result + rest
}
