//! The shape of a file: its length, its name, its first line.

use super::source::Source;
use crate::finding::Finding;

/// The maximum number of lines. A longer file has more than one idea.
const LONGEST: usize = 700;

pub(crate) fn check(source: &Source<'_>) -> Vec<Finding> {
    if source.is_generated() {
        return Vec::new();
    }
    let name = source.path.file_name().unwrap_or_default();
    let mut findings = Vec::new();
    let n_lines = source.text.lines().count();
    if n_lines > LONGEST {
        findings.push(Finding::new(
            source.path,
            LONGEST + 1,
            format!("{n_lines} lines, and {LONGEST} is the most"),
            "find the second idea in it and give it a file",
        ));
    }
    if name == "mod.rs" {
        findings.push(Finding::new(source.path, 1, "a file called mod.rs", "call it foo.rs, beside the folder foo/"));
    }
    // The module that a tests.rs tests describes it.
    let opening = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !opening.starts_with("//!") && name != "tests.rs" {
        findings.push(Finding::new(
            source.path,
            1,
            "no `//!` at the head of the file",
            "say there what the module is and what it is not",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn lines(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(Path::new(path), text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_longest_file_is_allowed_and_one_line_more_is_not() {
        let text = |n| format!("//! A table.\n{}", "x\n".repeat(n - 1));
        assert_eq!(lines("a.rs", &text(LONGEST)), [""; 0]);
        assert!(lines("a.rs", &text(LONGEST + 1))[0].starts_with("a.rs:701: 701 lines"));
        assert_eq!(lines("a.rs", &format!("// @generated\n{}", text(LONGEST + 1))), [""; 0]);
    }

    #[test]
    fn mod_files_are_found() {
        assert!(lines("a/mod.rs", "//! A.\n")[0].starts_with("a/mod.rs:1: a file called mod.rs"));
    }

    #[test]
    fn a_module_says_what_it_is() {
        assert!(lines("a.rs", "use b;\n//! Too late.\n")[0].starts_with("a.rs:1: no `//!`"));
        assert!(lines("a.rs", "")[0].starts_with("a.rs:1: no `//!`"));
        assert_eq!(lines("a/tests.rs", "use super::*;\n"), [""; 0]);
    }
}
