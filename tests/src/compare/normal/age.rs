//! How long ago something was.

use super::run;

/// Puts `AGE` in the place of each age in a column, and drops how often an event was seen.
///
/// A quantity may look like an age: `100m` of a processor. It has its name and a colon before it, or stands within
/// text; an age has a column of its own.
pub(super) fn mask(text: &str) -> String {
    // A cell of a Table in JSON: a text alone, without a name.
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

/// Whether this is what kubectl prints for a duration: `5s`, `2m3s`, `3d4h`, `2y10d`, `<invalid>` for less than none.
fn is_age(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text;
    while let length @ 1.. = digits(rest) {
        let Some(next) = rest[length..].strip_prefix(['y', 'd', 'h', 'm', 's']) else { return false };
        rest = next;
    }
    text == "<invalid>" || (!text.is_empty() && rest.is_empty())
}

/// Without ` (x3 over 2m)`.
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
