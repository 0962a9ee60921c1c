//! The walk-throughs in the code map: each step links to a file and names functions in it, as `` `name()` ``.
//!
//! [`frame`](super::frame) checks that the file is there. This rule checks that the file has the functions, so that a
//! renamed or moved function cannot leave a stale description behind.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

const CODE_MAP: &str = "ARCHITECTURE.md";

/// Checks every function that the code map names against the files that its step links to.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.text(Path::new(CODE_MAP)) else { return Vec::new() };
    let mut files = Vec::new();
    let mut findings = Vec::new();
    for (index, line) in map.lines().enumerate() {
        follow(&mut files, line);
        findings.extend(stale(line, &files, tree).map(|problem| finding(index + 1, problem)));
    }
    findings
}

fn finding(line: usize, problem: String) -> Finding {
    Finding::new(Path::new(CODE_MAP), line, problem, "name the function and the file that do this now")
}

/// Updates the files of the current step. A step begins with a line that is not indented and has links. The lines below it
/// belong to it.
fn follow<'a>(files: &mut Vec<&'a str>, line: &'a str) {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let linked: Vec<&str> =
        targets.filter(|target| Path::new(target).extension().is_some_and(|found| found == "rs")).collect();
    let is_continued = line.starts_with(' ');
    if line.starts_with('#') || (!linked.is_empty() && !is_continued) {
        files.clear();
    }
    files.extend(linked);
}

/// The problems of one line of a step with these files.
fn stale(line: &str, files: &[&str], tree: &Tree) -> impl Iterator<Item = String> {
    let texts: Vec<&str> = files.iter().filter_map(|file| tree.text(Path::new(file))).collect();
    let missing = functions(line).filter(move |name| !texts.iter().any(|text| defines(text, name)));
    missing.map(|name| {
        if files.is_empty() {
            format!("`{name}()` has no link to its file before it")
        } else {
            format!("{} has no function `{name}`", files.join(" and "))
        }
    })
}

/// The names in a line that are written as `` `name()` ``.
fn functions(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.strip_suffix("()")).map(|path| path.rsplit("::").next().unwrap_or(path))
}

/// Whether a file defines a function of this name.
fn defines(text: &str, name: &str) -> bool {
    let mut rest = text.split("fn ").skip(1);
    rest.any(|after| after.strip_prefix(name).is_some_and(|after| after.starts_with(['(', '<'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(map: &str) -> Vec<String> {
        let code = "pub(crate) async fn carry_out<'a>(call: &Call) {}\nimpl A {\n    fn serve(&self) {}\n}\n";
        let files = [(CODE_MAP, map), ("a/src/exchange.rs", code)];
        let tree: Tree = files.into_iter().map(|(path, text)| (path.into(), text.to_owned())).collect();
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_step_names_functions_of_its_files() {
        let step =
            "1. [exchange](a/src/exchange.rs): `serve()`, then\n   `carry_out()`.\n   - `serve()`. It has `no_call`.";
        assert!(problems(step).is_empty());
        let stale = problems("1. [exchange](a/src/exchange.rs): `serves()`\n   and `carry()`");
        assert!(stale.len() == 2 && stale[0].contains("a/src/exchange.rs has no function `serves`"), "{stale:?}");
        let unlinked = problems("[exchange](a/src/exchange.rs)\n# Next\n`serve()` accepts it");
        assert!(unlinked.len() == 1 && unlinked[0].contains(":3: `serve()` has no link"), "{unlinked:?}");
    }
}
