//! Forbidden words, and names without meaning.

use super::lexer::in_name;
use super::source::Source;
use crate::finding::Finding;

/// A word, and what to do instead. It does not match a part of a longer name.
type Word = (&'static str, &'static str);

const IN_CODE: &[Word] = &[
    ("todo!", "finish it, or leave it out of this change"),
    ("unimplemented!", "finish it, or make the state impossible"),
    ("#[ignore", "repair or delete the test; suites are skipped by name, with ATOLL_SKIP"),
    ("#[allow(", EXPECT),
    ("#![allow(", EXPECT),
];

const EXPECT: &str = "write #[expect(lint, reason = \"...\")], which says when it is not needed any more";

/// In lower case.
const IN_COMMENTS: &[Word] = &[("for now", "say what holds, or what would have to change")];

/// Suffixes of type names, and names of files, that fit anything.
const EMPTY_NAMES: &[&str] = &["context", "handler", "helper", "manager", "util", "utils"];
/// Names of files only.
const EMPTY_STEMS: &[&str] = &["common", "helpers", "misc"];

pub(crate) fn check(source: &Source<'_>) -> Vec<Finding> {
    if source.is_generated() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, code) in source.views.code.lines().enumerate() {
        for (word, remedy) in words_of(IN_CODE, code) {
            let problem = format!("`{word}`");
            findings.push(Finding::new(source.path, index + 1, problem, remedy));
        }
        if let Some(name) = empty_type_name(code) {
            let problem = format!("`{name}` says nothing about the type");
            findings.push(Finding::new(source.path, index + 1, problem, "name it for what it is"));
        }
    }
    for (index, comment) in source.views.comments.lines().enumerate() {
        for (word, remedy) in words_of(IN_COMMENTS, &comment.to_lowercase()) {
            let problem = format!("`{word}`");
            findings.push(Finding::new(source.path, index + 1, problem, remedy));
        }
    }
    let stem = source.path.file_stem().unwrap_or_default();
    if EMPTY_NAMES.iter().chain(EMPTY_STEMS).any(|empty| stem == *empty) {
        let problem = "anything could be in a file of this name";
        findings.push(Finding::new(source.path, 1, problem, "name it for the one idea in it"));
    }
    findings
}

fn words_of(words: &[Word], line: &str) -> Vec<Word> {
    let found = words.iter().filter(|(word, _)| contains(line, word));
    found.copied().collect()
}

/// Whether `line` contains `word`, and not as a part of a longer name.
fn contains(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(in_name) && word.starts_with(in_name);
        let after = line[at + word.len()..].chars().next().is_some_and(in_name) && word.ends_with(in_name);
        !before && !after
    })
}

/// The name of the type that a line declares, if it ends in such a suffix.
fn empty_type_name(code: &str) -> Option<&str> {
    let mut words = code.split(|char| !in_name(char)).filter(|word| !word.is_empty());
    words.find(|word| ["struct", "enum", "trait", "union", "type"].contains(word))?;
    let name = words.next()?;
    let lower = name.to_lowercase();
    EMPTY_NAMES.iter().any(|empty| lower.ends_with(empty)).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[track_caller]
    fn lines(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(Path::new(path), text)).iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check_one(path: &str, text: &str, start: &str) {
        let found = lines(path, text);
        assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn unfinished_code_is_found_where_it_is() {
        check_one("a.rs", "fn a() {\n    todo!()\n}\n", "a.rs:2: `todo!`; finish it");
        check_one("a.rs", "\nfn a() { unimplemented!(\"x\") }\n", "a.rs:2: `unimplemented!`");
        check_one("a.rs", "#[ignore = \"slow\"]\n", "a.rs:1: `#[ignore`");
        check_one("a.rs", "#[allow(dead_code)]\n", "a.rs:1: `#[allow(`");
        check_one("a.rs", "// Good enough for now.\n", "a.rs:1: `for now`");
    }

    #[test]
    fn a_word_in_the_wrong_place_is_no_word() {
        assert_eq!(lines("a.rs", "// todo! is not code\nlet x = \"todo!\"; my_todo!();\n"), [""; 0]);
        assert_eq!(lines("a.rs", "let x = \"for now\"; // therefor nowhere\n"), [""; 0]);
        assert_eq!(lines("a.rs", "// @generated\n// for now\n"), [""; 0]);
    }

    #[test]
    fn empty_names_are_found() {
        check_one("a.rs", "pub(crate) struct RequestHandler<T> {\n", "a.rs:1: `RequestHandler`");
        check_one("a/util.rs", "//! Things.\n", "a/util.rs:1: anything");
        assert_eq!(lines("a.rs", "fn poll(cx: &mut Context<'_>) {}\nuse anyhow::Context;\n"), [""; 0]);
    }
}
