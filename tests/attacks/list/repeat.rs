//! Values that occur many times in a request.

/// A JSON array of `count` times this value.
pub(super) fn elements(value: &str, count: usize) -> String {
    format!("[{}]", vec![value; count].join(","))
}

/// `count` different texts.
pub(super) fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}
