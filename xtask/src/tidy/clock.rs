//! Tests do not sleep: a sleep is too short on a slow machine and too long on all others.
//!
//! The rule does not apply to a paused clock (`#[tokio::test(start_paused = true)]`), which a sleep only advances.

use super::lexer::in_name;
use super::source::Source;
use crate::finding::Finding;

pub(crate) fn check(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_paused = false;
    for (index, code) in source.views.code.lines().enumerate() {
        let line = index + 1;
        if code.contains("#[tokio::test") || code.contains("#[test]") {
            is_paused = code.contains("start_paused = true");
        }
        let sleeps = calls(code, "sleep") || calls(code, "sleep_until");
        let is_harmless = is_paused && !code.contains("thread::sleep");
        if source.is_test(line) && sleeps && !is_harmless {
            findings.push(Finding::new(
                source.path,
                line,
                "a test sleeps",
                "wait for the event itself under a timeout, or pause the clock (start_paused = true)",
            ));
        }
    }
    findings
}

/// Whether a line calls a function of this name, whatever its path.
fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let after = &code[at + name.len()..];
        !code[..at].ends_with(in_name) && after.trim_start().starts_with('(')
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const CALL: &str = "    tokio::time::sleep(SECOND).await;\n";

    fn lines(path: &str, text: &str) -> Vec<String> {
        let findings = check(&Source::new(Path::new(path), text));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_tests_must_not_sleep() {
        assert_eq!(lines("a.rs", CALL), [""; 0]);
        assert!(lines("a/tests.rs", CALL)[0].starts_with("a/tests.rs:1: a test sleeps; wait"));
        let text = format!("#[cfg(test)]\nmod tests {{\n{CALL}}}\n");
        assert!(lines("a.rs", &text)[0].starts_with("a.rs:3: "));
        assert_eq!(lines("a/tests.rs", "oversleep(); asleep; fn_sleep();\n"), [""; 0]);
    }

    #[test]
    fn a_paused_clock_is_moved_by_sleeping() {
        let paused = format!("#[tokio::test(start_paused = true)]\nasync fn a() {{\n{CALL}}}\n");
        assert_eq!(lines("a/tests.rs", &paused), [""; 0]);
        let then = format!("{paused}#[tokio::test]\nasync fn b() {{\n{CALL}}}\n");
        assert!(lines("a/tests.rs", &then)[0].starts_with("a/tests.rs:7: "));
        let thread = paused.replace("tokio::time", "std::thread");
        assert!(lines("a/tests.rs", &thread)[0].starts_with("a/tests.rs:3: "));
    }
}
