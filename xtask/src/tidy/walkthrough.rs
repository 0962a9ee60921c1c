//! The walk-throughs in the code map: each step links to a file and names functions in it, as `` `name()` ``.
//!
//! [`frame`](super::frame) checks that the file is there. This rule checks that the file has the functions, so that a
//! renamed or moved function cannot leave a stale description behind.

use std::path::Path;

use super::finding::Finding;
use super::tree::Tree;

const CODE_MAP: &str = "ARCHITECTURE.md";

/// Checks the lines of the code map that link to Rust files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.text(Path::new(CODE_MAP)) else { return Vec::new() };
    let lines = map.lines().enumerate();
    lines.flat_map(|(index, line)| stale(line, tree).map(move |problem| finding(index + 1, problem))).collect()
}

fn finding(line: usize, problem: String) -> Finding {
    Finding::new(Path::new(CODE_MAP), line, problem, "name the function and the file that do this now")
}

/// The problems of one line. A line without a link to a Rust file has none, unless it names a function.
fn stale<'a>(line: &'a str, tree: &'a Tree) -> impl Iterator<Item = String> + 'a {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files: Vec<&str> =
        links.filter(|target| Path::new(target).extension().is_some_and(|found| found == "rs")).collect();
    let texts: Vec<&str> = files.iter().filter_map(|file| tree.text(Path::new(file))).collect();
    functions(line).filter(move |name| !texts.iter().any(|text| defines(text, name))).map(move |name| {
        if files.is_empty() {
            format!("`{name}()` stands on a line without a link to its file")
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
    fn a_step_names_functions_of_its_file() {
        assert!(
            problems("1. [exchange](a/src/exchange.rs): `serve()`, then `carry_out()`. It has `no_call`.").is_empty()
        );
        let stale = problems("1. [exchange](a/src/exchange.rs): `serves()` and `carry()`");
        assert!(stale.len() == 2 && stale[0].contains("a/src/exchange.rs has no function `serves`"), "{stale:?}");
        let unlinked = problems("`serve()` accepts it");
        assert!(unlinked[0].contains("without a link"), "{unlinked:?}");
    }
}
