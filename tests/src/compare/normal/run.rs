//! Runs of characters of one class.

/// Calls `replace` for each longest run of characters for which `belongs` is true. `replace` gets the text before the
/// run, the run, and the text after it, and may return a replacement.
pub(super) fn replace(
    text: &str,
    belongs: impl Fn(char) -> bool,
    replace: impl Fn(&str, &str, &str) -> Option<String>,
) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(start) = text[at..].find(&belongs).map(|start| at + start) {
        let end = text[start..].find(|char| !belongs(char)).map_or(text.len(), |length| start + length);
        result.push_str(&text[at..start]);
        let run = &text[start..end];
        match replace(&text[..start], run, &text[end..]) {
            Some(new) => result.push_str(&new),
            None => result.push_str(run),
        }
        at = end;
    }
    result.push_str(&text[at..]);
    result
}
